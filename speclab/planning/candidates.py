"""The methods, with settings, among which a plan chooses.

Knows no clock and no model: only what a method needs of a pair, and which draft lengths
are worth trying at a cost ratio.
"""

from __future__ import annotations

from typing import NamedTuple

from speclib.decoding.auto_settings import rounds_up
from speclib.decoding.choose_lookahead import halves
from speclib.worlds.cost_ratio import nearest_count

LONGEST = 32  # drafts per round: keeps the search short where c is large


class Candidate(NamedTuple):
    """A method and its settings, as pairs of a name and a value."""

    method: str
    settings: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """As in "pearl, gamma 5"."""
        parts = [f"{setting} {value}" for setting, value in self.settings]
        return ", ".join([self.method, *parts])


PLAIN = Candidate("autoregressive")


def _candidate(method: str, **settings: int) -> Candidate:
    return Candidate(method, tuple(settings.items()))


def candidates_at(c: float, servers: int = 1) -> list[Candidate]:
    """What any pair of a draft and a target can run; c = t_target / t_draft.

    Draft lengths of PEARL lie about c, by its Theorem 1. Those of speculative decoding
    go up to 2 c: the best one is shorter than c where drafts are often wrong, and about
    2 c in PEARL's Table 14, where they hardly ever are. Left out are methods that need
    a model of their own (EAGLE) or a draft spread over devices (EasySpec), and assisted
    generation, which is speculative decoding with another rule for its draft length.
    """
    matched = min(LONGEST, nearest_count(c))
    candidates = [PLAIN]
    for gamma in _up_to(min(LONGEST, 2 * matched + 2)):
        candidates.append(_candidate("speculative", gamma=gamma))
    for gamma in range(max(1, matched - 2), min(LONGEST, matched + 1) + 1):
        candidates.append(_candidate("pearl", gamma=gamma))
    for width in (2, 4):
        half = max(1, matched // 2)
        candidates.append(_candidate("tree", gamma=half, width=width))
    candidates.append(_candidate("duodecoding", gamma=matched))
    candidates.append(_candidate("duodecoding", gamma=matched, k=1))
    for lookahead in halves(min(LONGEST, rounds_up(c / servers))):
        candidates.append(_candidate("dsi", lookahead=lookahead, servers=servers))
    candidates.append(_candidate("ouroboros", gamma=matched))
    for method in ("prompt_lookup", "lookahead", "rest"):
        candidates.append(_candidate(method))
    return candidates


def _up_to(longest: int) -> list[int]:
    """1 to 4, and then fewer and fewer: neighbouring long drafts hardly differ."""
    lengths = []
    length = 1
    while length <= longest:
        lengths.append(length)
        length += max(1, length // 4)
    return lengths
