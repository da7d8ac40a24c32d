"""Greedy output equals plain decoding's for the embedded pair in float32.

The fast part decodes one prompt with every method's first variant. The slow part uses
one prompt from each of two other tasks, with one gamma each; every other variant runs
on one of them. The thorough part tries every gamma and every variant on two prompts of
every task on the virtual clock, and one prompt of every task in real processes. Each
difference is reported with the gap between the target's two best logits at its start.
"""

import numpy as np
import pytest

pytest.importorskip("torch")

from helpers.watched_world import common_prefix  # noqa: E402

import speclib  # noqa: E402
from speclib.core.sampling import Sampler  # noqa: E402
from speclib.data import prompts  # noqa: E402
from speclib.methods import METHODS, about, takes_gamma  # noqa: E402
from speclib.models import zoo  # noqa: E402

if not (zoo.ZOO / "draft-good" / "model.safetensors").exists():
    pytest.skip(
        "the embedded models are not trained: make models", allow_module_level=True
    )

GAMMAS = (1, 2, 3, 5, 8)
# All tasks except mt_bench, whose eight categories are listed instead.
TASKS = [task for task in prompts.tasks() if task != "mt_bench"]
CASES = [
    (method, settings)
    for method in METHODS
    if method != "autoregressive" and not about(method).needs_head
    for settings in about(method).variants
]
FEW = (("mgsm_te", 1), ("gsm8k", 3))  # tasks, each with its gamma
PAIR = speclib.load_pair("embedded/llama-7b-70b")


def cases_of(turn: int) -> list[tuple[str, dict]]:
    """Returns every other variant, starting at ``turn``, except each method's first."""
    further = [
        (method, settings)
        for method, settings in CASES
        if settings != about(method).variants[0]
    ]
    return further[turn :: len(FEW)]


def undilated(pair):
    """Returns the pair undilated, with the same logits and smaller networks."""
    draft = pair.draft.model_copy(update={"shape": None})
    target = pair.target.model_copy(update={"shape": None})
    return pair.model_copy(update={"draft": draft, "target": target})


@pytest.fixture(scope="module")
def virtual():
    with speclib.open_world("virtual", PAIR) as world:
        yield world


def gap(world, text) -> float:
    """Returns the gap between the target's two best log-probabilities after a text."""
    model = world.models["target"]
    model.reset()
    (row,) = model.rows(text, 0, Sampler(temperature=1.0))
    second, best = np.sort(np.log(row))[-2:]
    return float(best - second)


def differences(
    world, judge, task: str, count: int, gammas=GAMMAS, tokens=64, cases=CASES
) -> list[str]:
    """Describes every run of ``task`` whose tokens differ from plain decoding's.

    ``judge`` is a virtual world, which computes the gaps.
    """
    differing = []
    for prompt in prompts.load(task)[:count]:
        plain = speclib.decode(
            prompt.input, world=world, method="autoregressive", max_new_tokens=tokens
        )
        for method, settings in cases:
            for gamma in gammas if takes_gamma(method) else ("auto",):
                result = speclib.decode(
                    prompt.input,
                    world=world,
                    method=method,
                    gamma=gamma,
                    max_new_tokens=tokens,
                    **settings,
                )
                if result.tokens != plain.tokens:
                    length = common_prefix(result.tokens, plain.tokens)
                    text = tuple(plain.trace.meta["prompt"]) + plain.tokens[:length]
                    differing.append(
                        f"{prompt.id} {method} {settings} gamma={gamma}: "
                        f"token {length}, top-2 gap {gap(judge, text):.2g}"
                    )
    return differing


@pytest.mark.parametrize(
    "method", [name for name in METHODS if not about(name).needs_head]
)
def test_every_registered_method_writes_plain_decodings_text(virtual, method):
    first_variant = about(method).variants[0]
    differing = differences(
        virtual,
        virtual,
        "humaneval",
        1,
        gammas=(5,),
        tokens=16,
        cases=[(method, first_variant)],
    )
    assert differing == []


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(len(FEW)), ids=[task for task, _ in FEW])
def test_greedy_output_is_plain_decodings_own(virtual, turn):
    task, gamma = FEW[turn]
    differing = differences(
        virtual, virtual, task, 1, gammas=(gamma,), tokens=32, cases=cases_of(turn)
    )
    assert differing == []


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("task", TASKS)
def test_greedy_output_is_plain_decodings_own_for_every_gamma_and_variant(
    virtual, task
):
    assert differences(virtual, virtual, task, 2) == []


@pytest.mark.slow
@pytest.mark.thorough
def test_greedy_output_is_plain_decodings_own_in_real_processes(virtual):
    with speclib.Processes(undilated(PAIR)) as world:
        differing = []
        for task in TASKS:
            differing += differences(world, virtual, task, 1)
    assert differing == []


@pytest.mark.slow
def test_dilation_does_not_change_a_token(virtual):
    prompt = prompts.load("humaneval")[0].input
    wanted = speclib.decode(
        prompt, world=virtual, method="autoregressive", max_new_tokens=16
    )
    with speclib.Processes(PAIR) as world:
        result = speclib.decode(
            prompt, world=world, method="pearl", gamma=5, max_new_tokens=16
        )
    assert result.tokens == wanted.tokens


@pytest.mark.slow
def test_with_a_fixed_seed_sampled_output_is_the_same_in_every_world(virtual):
    prompt = prompts.load("gsm8k")[0].input
    settings = dict(
        method="pearl", gamma=3, temperature=0.8, top_p=0.9, seed=4, max_new_tokens=32
    )
    on_virtual_clock = speclib.decode(prompt, world=virtual, **settings)
    with speclib.Processes(undilated(PAIR)) as world:
        in_processes = speclib.decode(prompt, world=world, **settings)
    assert in_processes.tokens == on_virtual_clock.tokens
