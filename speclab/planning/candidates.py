"""The methods, with settings, among which a plan chooses.

Every method's page says what is worth trying at a cost ratio (``ABOUT``). Left out are
those that say nothing, and those that need a datastore where the pair names none.
Knows no clock and no model.
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


def candidates_at(
    c: float, servers: int = 1, has_datastore: bool = False
) -> list[Candidate]:
    """What any pair of a draft and a target can run; c = t_target / t_draft.

    ``has_datastore``: whether the pair names texts of the user's own. How fast REST is
    depends on them alone, and the tasks that it looks up without them are like the
    prompts. Plain decoding is the first candidate.
    """
    candidates = []
    for method in METHODS:
        page = about(method)
        if page.needs_datastore and not has_datastore:
            continue
        for settings in page.worth_trying(c, servers):
            candidates.append(Candidate(method, tuple(settings.items())))
    return candidates
