"""Facts about a method other than its algorithm; its file states them as ``ABOUT``.

Timelines, planners, tests and "auto" read these facts, so none of them needs its own
list of methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Settings: TypeAlias = Mapping[str, Any]
# Returns the words for a setting's value (None if it is not given), or "".
Label: TypeAlias = Callable[[Any], str]


def shows(text: str) -> Label:
    """A label: ``text`` in which the value replaces ``{}``; "" without a value."""
    return lambda value: text.format(value) if value else ""


GAMMA = {"gamma": shows("γ = {}")}
TEST = {"test": shows("{} test")}  # how drafts are tested


@dataclass(frozen=True)
class About:
    """Facts about a method.

    ``name``: as its paper writes it. ``labels``: how to write settings after the name,
    in this order. ``auto_gamma``: what gamma="auto" means; None: round(c) minus
    ``passes_without_drafts``, the draft passes of a round that draft nothing.
    ``variants``: the settings to test; ``gamma`` is added if the method has it.
    ``depends_on_timing``: its operations depend on which one ends first, so they differ
    between clocks. ``needs_datastore``: a plan omits the method unless the pair has a
    datastore. ``needs_head``: its draft is a head on the target's features.
    ``uses_draft``: whether a draft model writes anything. ``narrow``: the settings, or
    the method, to use instead if a pass over many tokens costs much more than a pass
    over one, for example on a CPU.
    """

    name: str
    labels: Mapping[str, Label] = field(default_factory=lambda: GAMMA)
    auto_gamma: int | None = None
    passes_without_drafts: int = 0
    variants: Sequence[Settings] = ({},)
    depends_on_timing: bool = False
    needs_datastore: bool = False
    needs_head: bool = False
    uses_draft: bool = True
    narrow: str = ""

    def note(self, settings: Settings) -> str:
        """The settings as shown with a run's name: "γ = 5, dynamic k"."""
        parts = [label(settings.get(name)) for name, label in self.labels.items()]
        return ", ".join(part for part in parts if part)
