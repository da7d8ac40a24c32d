"""The methods, with settings, among which a plan chooses.

Every method's page says what is worth trying at a cost ratio (``ABOUT``). Left out are
those that say nothing. Knows no clock and no model.
"""

from __future__ import annotations

from typing import NamedTuple

from speclib.methods import METHODS, about


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


def candidates_at(c: float, servers: int = 1) -> list[Candidate]:
    """What any pair of a draft and a target can run; c = t_target / t_draft.

    Plain decoding is the first.
    """
    candidates = []
    for method in METHODS:
        for settings in about(method).worth_trying(c, servers):
            candidates.append(Candidate(method, tuple(settings.items())))
    return candidates
