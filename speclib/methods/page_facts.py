"""What is to be known of a method beside what it does; its page says it as ``ABOUT``.

Timelines, planners, tests and "auto" ask here, so that none of them has a list of
methods of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Settings: TypeAlias = Mapping[str, Any]
# Given a setting's value, None where it is not given, the words for it, or "".
Label: TypeAlias = Callable[[Any], str]


def shows(text: str) -> Label:
    """A label that has the value at ``{}``."""
    return lambda value: text.format(value) if value else ""


GAMMA = {"gamma": shows("γ = {}")}
TEST = {"test": shows("{} test")}  # of drafts


@dataclass(frozen=True)
class About:
    """Facts of a method.

    ``name``: as its paper writes it. ``labels``: how settings are written beside that,
    in this order. ``auto_gamma``: what gamma="auto" means; None: round(c), less
    ``passes_besides``, the passes of the draft in a round that draft nothing.
    ``variants``: the settings in which it is tested; ``gamma`` is added where it takes
    one. ``goes_by_time``: what it asks for depends on what ends first, so a run on
    another clock is another run. ``needs_datastore``: a plan leaves it out unless the
    pair names texts to look up. ``needs_head``: its draft is a head on the target's
    features. ``uses_draft``: whether a draft model writes anything. ``narrow``: its
    settings for models to which a pass over many tokens costs much more than one over a
    single token, as on a CPU; or another method.
    """

    name: str
    labels: Mapping[str, Label] = field(default_factory=lambda: GAMMA)
    auto_gamma: int | None = None
    passes_besides: int = 0
    variants: Sequence[Settings] = ({},)
    goes_by_time: bool = False
    needs_datastore: bool = False
    needs_head: bool = False
    uses_draft: bool = True
    narrow: str = ""

    def note(self, settings: Settings) -> str:
        """Settings as they stand beside a run's name: "γ = 5, dynamic k"."""
        parts = [label(settings.get(name)) for name, label in self.labels.items()]
        return ", ".join(part for part in parts if part)
