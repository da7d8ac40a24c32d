"""What if: any method at any cost ratio and acceptance rate, on the virtual clock, in milliseconds.

For lectures and sliders. The target writes a fixed text; the draft agrees with each of its words
independently with probability alpha, and says another of them otherwise. Kind: virtual.
"""

from __future__ import annotations

from functools import cache

from .decoding import Result, draft_length
from .errors import SpeclibError
from .latency import Latency
from .methods import METHODS, takes_gamma
from .metrics import stats
from .models.toy import BOS, Toy
from .tokens import Coins, Sampler
from .virtual import Virtual

TEXT = ("A small model runs ahead and guesses the next few words while the large one reads "
        "them all in a single pass . It keeps every word it would have written itself and "
        "corrects the first one that it would not , so the text never changes and only the "
        "waiting does . When both work at once nobody waits , and the time of a step is that "
        "of the slower of the two .")


@cache
def _words(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The vocabulary (id 0 is the prompt) and the text as ids."""
    said = text.split()
    vocab = ("", *dict.fromkeys(said))
    return vocab, tuple(vocab.index(w) for w in said)


def simulate(method: str = "pearl", *, gamma: int | str = "auto", c: float = 5.0,
             alpha: float = 0.9, tokens: int = 32, target: float = 0.1, seed: int = 0,
             text: str = TEXT, **settings) -> Result:
    """``method`` writing ``tokens`` words of ``text`` where one target pass takes ``target``
    seconds, the draft is ``c`` times faster, and it agrees with probability ``alpha``.

    The same ``seed`` draws the same agreements for every method, gamma and c. Raises SpeclibError
    for an unknown method, gamma below 1, alpha outside 0 .. 1, c not above 0.
    """
    if method not in METHODS:
        raise SpeclibError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    vocab, ids = _words(text)
    models = {"draft": Toy(alpha, len(vocab), seed, ids),
              "target": Toy(None, len(vocab), seed, ids)}
    world = Virtual(models, Latency.ratio(c, target))
    if takes_gamma(method):
        settings["gamma"] = draft_length(gamma, world)
    world.begin((BOS,), sampler=Sampler(), coins=Coins(seed), limit=tokens)
    METHODS[method](world, **settings)
    trace = world.end(method=method, c=c, alpha=alpha, prompt=[BOS], **settings)
    said = world.text[1:]
    return Result(" ".join(vocab[t] for t in said), said, stats(trace), trace,
                  {i: f" {w}" for i, w in enumerate(vocab)})


def compare(method: str = "pearl", *, gamma: int | str = "auto", without: str | None = None,
            **what) -> list[Result]:
    """Plain decoding, SD and ``method`` on the same what-if, in this order: for sliders.

    ``method`` may be one of the two, which is then not repeated; ``without`` is PEARL's.
    """
    shown = [simulate("autoregressive", **what), simulate("speculative", gamma=gamma, **what)]
    if method not in ("autoregressive", "speculative"):
        settings = {"without": without} if without else {}
        shown.append(simulate(method, gamma=gamma, **settings, **what))
    return shown
