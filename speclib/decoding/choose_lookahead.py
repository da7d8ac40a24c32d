"""DSI's lookahead where a user leaves it open: what is fastest on the virtual clock.

Section 3.1 of the paper gives the shortest lookahead at which so many servers are
enough: ceil(c / servers). It is chosen for a drafter that never waits for a free
server, and says nothing of when a block of drafts is there to be scored. With one
server a block of c drafts is written when the target's pass is over, or just after it.
So the target begins its next pass without it, and a rejection throws a long block away.

Here the method's own code runs with that lookahead, with half of it, a quarter, and so
on down to 1. The fastest is taken, but the paper's where it is as fast to within 3 %,
which is what chance makes of so few tokens. Where servers are enough for a lookahead of
1, that is the paper's answer, and nothing needs to be tried.

What is assumed, as it is not known before decoding:

- acceptance rates of 0.6, 0.8 and 0.9, whose times are added up;
- passes that vary by a few percent, so that no choice lives on two passes that end at
  the same moment;
- messages that take a tenth of a draft pass per operation, which a short lookahead has
  more of.
"""

from __future__ import annotations

from functools import cache
from random import Random

from speclib.core.counts import halves
from speclib.core.sampling import Coins, Sampler
from speclib.methods import METHODS
from speclib.models.toy import BOS, Toy
from speclib.operations.operation import Operation
from speclib.worlds.devices import device_names
from speclib.worlds.virtual import Virtual

ALPHAS = (0.6, 0.8, 0.9)
TOKENS = 50  # at each acceptance rate
WORTH_LEAVING_THE_PAPER = 1.03
VARIES_BY = 0.05  # of a pass
MESSAGES = 0.1  # of a draft pass, per operation


@cache
def choose_lookahead(c: float, longest: int, servers: int, cancel: str) -> int:
    """The fastest of ``longest``, half of it, a quarter, ..., 1.

    ``longest``: the paper's lookahead, ceil(c / servers), which is taken where none is
    clearly faster. ``cancel``: the world's policy; under "after-op" long blocks cost
    more, as a drafter ends the one that nobody wants any more.
    """
    if longest == 1:
        return 1
    seconds = {}
    for lookahead in halves(longest):
        seconds[lookahead] = simulated_seconds(c, lookahead, servers, cancel)
    fastest = min(seconds, key=seconds.__getitem__)
    if seconds[longest] <= WORTH_LEAVING_THE_PAPER * seconds[fastest]:
        return longest
    return fastest


def simulated_seconds(c: float, lookahead: int, servers: int, cancel: str) -> float:
    """Seconds that DSI takes for ``TOKENS`` tokens at each of ``ALPHAS``.

    A target pass takes 1. The same drafts are right for every lookahead.
    """
    total = 0.0
    for seed, alpha in enumerate(ALPHAS):
        models = {}
        for name in device_names(servers):
            agrees = alpha if name == "draft" else None
            models[name] = Toy(agrees, seed=seed, context=TOKENS + 1)
        world = Virtual(models, UnevenPasses(c), cancel=cancel)
        world.begin((BOS,), sampler=Sampler(), coins=Coins(), limit=TOKENS)
        METHODS["dsi"](world, lookahead=lookahead, servers=servers)
        total += world.now
    return total


class UnevenPasses:
    """Durations of passes that vary, and of the messages around each operation.

    Each device has random numbers of its own, the same ones in every run.
    """

    def __init__(self, c: float):
        self.c = c
        self._random_of_device: dict[str, Random] = {}

    def seconds(self, device: str, op: Operation, kept: int, fed: int) -> float:
        """Seconds of an operation; of one target pass about 1."""
        random = self._random_of_device.setdefault(device, Random(device))
        seconds_of_pass = 1 / self.c if device == "draft" else 1.0
        seconds = MESSAGES / self.c
        for forward in op.passes(kept, fed):
            for _ in range(forward.times):
                varied = 1 + random.uniform(-VARIES_BY, VARIES_BY)
                seconds += seconds_of_pass * varied
        return seconds
