"""The values that no rebuilding may change, as speclib's public entries give them.

`python tests/frozen/make.py` writes them to values.json. Run it only after a change
that is meant to change them, and give the reason with the new values.
"""

import hashlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import speclib
from speclib.core.sampling import Sampler
from speclib.methods import METHODS, about, parameters
from speclib.models.toy import Random
from speclib.worlds.enumerator import outcomes

FILE = Path(__file__).parent / "values.json"
PROMPTS = (Path(__file__).parent / "prompts.txt").read_text().splitlines()
GRID = (  # of traces. With a temperature, the pair "toy" decodes; else it is simulated
    {},
    {"c": 3.0, "alpha": 0.6, "gamma": 2},
    {"c": 8.0, "alpha": 0.8, "gamma": 5, "doubt": 0.5, "seed": 1},
    {"c": 6.0, "alpha": 0.7, "servers": 3},
    {"c": 1.0, "alpha": 0.0, "gamma": 1, "seed": 2},
    {"c": 4.0, "alpha": 1.0, "gamma": 4, "tokens": 17},
    {"stages": 4, "cancel": "after-op", "per_token": 0.05},
    {"batch": 2, "requests": 3, "gamma": 3, "seed": 3},
    {"temperature": 0.8, "gamma": 3, "servers": 2, "max_new_tokens": 24},
    {"temperature": 1.5, "top_k": 5, "top_p": 0.9, "seed": 4, "max_new_tokens": 24},
)
EXACT = {  # distributions over tokens of so many kinds, and the sampler
    "two kinds": (2, Sampler(1.0)),
    "three kinds, shaped": (3, Sampler(0.7, top_k=2, top_p=0.9)),
    "three kinds": (3, Sampler(1.0)),
}


def runs(**settings):
    """Every variant with the ``settings`` that it takes: name -> (method, settings)."""
    found = {}
    for method in METHODS:
        refused = {"gamma", "servers"}.difference(parameters(method))
        if not about(method).uses_draft:
            refused |= {"alpha", "doubt"}
        if about(method).depends_on_timing:
            refused |= {"batch", "requests"}
        taken = {name: settings[name] for name in settings if name not in refused}
        for own in about(method).variants:
            words = [f"{name}={value}" for name, value in (taken | own).items()]
            found[" ".join([method, *words])] = (method, taken | own)
    return found


PLAIN = ("autoregressive", {})
SHORT = runs(gamma=2)
TRACED = {name: run for settings in GRID for name, run in runs(**settings).items()}


@cache
def virtual_world(pair):
    return speclib.open_world("virtual", speclib.load_pair(pair))


def greedy_tokens(prompt, count, method, settings):
    pair = "eagle-narrow" if about(method).needs_head else "llama-7b-70b"
    world = virtual_world(f"embedded/{pair}")
    request = {"max_new_tokens": count, "ignore_eos": True, **settings}
    return list(speclib.decode(prompt, method=method, world=world, **request).tokens)


def simulated(method, stages=None, per_token=0.0, **settings):
    """A what-if's results: one, or those of all requests of a batch."""
    if stages is not None:
        alone = speclib.Latency.ratio(5.0, 0.1)
        settings["latency"] = alone.sharing(stages).lengthened(per_token)
    if "batch" in settings:
        return speclib.simulate_batch(method, **settings).results
    return [speclib.simulate(method, **settings)]


def trace_hash(method, settings):
    """A hash of every byte of a run's trace, or of those of its requests."""
    if "temperature" in settings:
        how = dict(pair="toy", world="virtual", method=method, **settings)
        results = [speclib.decode("a", **how)]
    else:
        results = simulated(method, **settings)
    traces = "\n".join(each.trace.to_json() for each in results)
    return hashlib.sha256(traces.encode()).hexdigest()[:16]


def enumerated(kinds, method, settings):
    """The chances of all outputs of three tokens, and the expected seconds."""
    vocab, sampler = EXACT[kinds]
    seconds = 0.0

    def timed(world, **given):
        nonlocal seconds
        METHODS[method](world, **given)
        seconds += world.coins.mass * world.now

    models = {"draft": Random(vocab, 10, 4), "target": Random(vocab, 20, 4)}
    chances = outcomes(timed, models, 3, sampler=sampler, **settings)
    by_text = {str(tokens): chances[tokens] for tokens in sorted(chances)}
    return by_text | {"seconds": seconds}


def expected_seconds(kinds):
    return {name: enumerated(kinds, *run)["seconds"] for name, run in SHORT.items()}


def rows_of_two_ranks():
    """The chances of the first eight tokens after each of four texts, in float64."""
    from helpers.checkpoints import PLAIN, TEXT, VOCAB, network
    from helpers.ranks_in_threads import RankInThread, Table

    from speclib.models.parallel.tensor_parallel import Tensors

    table = Table(2)
    models = [Tensors(network().double(), VOCAB, number, 2) for number in range(2)]
    for number, model in enumerate(models):
        model.ranks = RankInThread(table, number)
    with ThreadPoolExecutor(2) as threads:
        rows, _ = threads.map(lambda model: model.rows((*TEXT, 7), 3, PLAIN), models)
    return rows[:, :8].ravel().tolist()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are
    values = {
        "greedy": {prompt: greedy_tokens(prompt, 12, *PLAIN) for prompt in PROMPTS},
        "traces": {name: trace_hash(*run) for name, run in TRACED.items()},
        "exact": {kinds: enumerated(kinds, *PLAIN) for kinds in EXACT},
        "seconds": {kinds: expected_seconds(kinds) for kinds in EXACT},
        "two ranks": rows_of_two_ranks(),
    }
    FILE.write_text(json.dumps(values, indent=1) + "\n")
