"""Checks a method's settings once, and resolves every "auto" to a number.

Three of a method's counts can be "auto": its draft length, its lookahead and its number
of target servers. They are computed from c = t_target / t_draft with the papers'
formulas, except for DSI's lookahead with a single server. This module uses no method,
only the names of methods and settings.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, TypeAlias

from speclib.arguments import Whole, shown
from speclib.data.pairs import Pair
from speclib.errors import BadValue
from speclib.methods import about, find, parameters
from speclib.worlds.world import World

AUTO: Literal["auto"] = "auto"
AutoCount: TypeAlias = int | str  # a number or "auto"; a gamma may also be "c-2"

COUNTS = {
    "gamma": "a draft length",
    "lookahead": "a lookahead",
    "servers": "a number of target servers",
}
MOST = 1000  # a larger count would keep a machine busy for minutes without any benefit
ALLOWED = Whole(least=1, most=MOST)

MOST_SERVERS = 7  # with a drafter: the DSI paper's node of eight GPUs


# -- what a user asks for --------------------------------------------------------------
@dataclass(frozen=True)
class RequestedSettings:
    """A method and the settings that a user gave it; its counts may still be "auto".

    ``given``: the given settings that the method has, in the order they were given.
    ``counts``: the method's settings that are in ``COUNTS``; "auto" if left out.
    """

    method: str
    given: Mapping[str, Any]
    counts: Mapping[str, AutoCount]

    @property
    def depends_on_c(self) -> bool:
        """Whether any count is computed from c = t_target / t_draft."""
        gamma = self.counts.get("gamma", 1)
        if isinstance(gamma, str):
            return gamma != AUTO or about(self.method).auto_gamma is None
        return AUTO in (self.counts.get("lookahead"), self.counts.get("servers"))

    def check_pair(self, pair: Pair) -> None:
        """Raises BadValue for a pair whose draft cannot draft for this method."""
        draft = pair.draft
        if about(self.method).needs_head and not (draft.head or draft.is_toy):
            raise BadValue(
                f"method {self.method!r} drafts with a head on the target's features, "
                f"and the draft of pair {pair.name!r} is a whole model, "
                f"{draft.model!r}: give a pair whose draft has head = true, or use "
                'method="tree"'
            )
        if draft.in_llamacpp and "lp" in parameters(self.method):
            lp = self.given.get("lp")
            if lp != 1:
                raise BadValue(
                    f"method {self.method!r} runs several layers of the draft at once, "
                    f"which llama.cpp cannot do with {draft.model!r}: give lp=1, which "
                    "is tree SD, or a pair whose draft is in torch"
                )
        self._warn_of_wide_passes(pair)

    def _warn_of_wide_passes(self, pair: Pair) -> None:
        """Warns if the method's passes over many tokens may cost more than they save.

        On a CPU every additional token makes a pass slower: in llama.cpp eight tokens
        cost five times as much as one. In torch, a target can be fed about a dozen.
        """
        facts, target = about(self.method), pair.target
        is_real = not target.is_toy and not target.model.startswith("zoo/")
        on_cpu = is_real and not any("cuda" in place for place in pair.place.target)
        is_costly = pair.draft.in_llamacpp if facts.uses_draft else on_cpu
        names = re.findall(r"(\w+)=", facts.narrow)
        if facts.narrow and is_costly and not self.given.keys() & set(names):
            warnings.warn(
                f"{facts.name} feeds many tokens to a pass, so it may be slower than "
                f"plain decoding with pair {pair.name!r}. Try {facts.narrow}",
                stacklevel=4,
            )

    def servers_at(self, c: float, available: int = MOST_SERVERS) -> int:
        """How many target servers the method uses.

        It is the requested number. With "auto" it is the number that keeps up with the
        drafter, ceil(c / lookahead), but no more than ``available``.
        """
        servers = self.counts.get("servers", 1)
        if isinstance(servers, int):
            return servers
        lookahead = self.counts.get("lookahead", AUTO)
        least = lookahead if isinstance(lookahead, int) else 1
        return round_up(min(available, c / least))

    def resolve(self, world: World) -> dict[str, Any]:
        """The settings for a method's run in an open ``world``, "auto" resolved.

        gamma = round(c), the optimum of PEARL's Theorem 1, unless the method's ABOUT
        states another default; lookahead = ceil(c / servers) and servers =
        ceil(c / lookahead), up to the number of servers in the world. If both are
        "auto", there are enough servers for a lookahead of 1.

        If a message to the target takes longer than one to the draft, gamma grows by
        the number of drafts that fit into the difference.

        Source: PEARL, section 3; Timor et al. 2024 (DSI), section 3.1.
        Differences from the papers: they do not consider messages. With one server,
        DSI's lookahead is 1 and not the paper's ceil(c / 1). With the paper's value,
        each block of drafts would be ready just when the target's pass ends, too late
        for the next pass.
        """
        settings = dict(self.given)
        if "gamma" in self.counts:
            settings["gamma"] = self._resolve_gamma(world)
        if "lookahead" in self.counts:
            settings["lookahead"] = self._resolve_lookahead(world)
        if "servers" in self.counts:
            settings["servers"] = self._resolve_servers(world)
        return settings

    def _resolve_gamma(self, world: World) -> int:
        gamma = self.counts["gamma"]
        if isinstance(gamma, int):
            return gamma
        own_gamma = about(self.method).auto_gamma
        if gamma == AUTO and own_gamma is not None:
            return own_gamma
        without_drafts = about(self.method).passes_without_drafts
        drafts = max(1.0, world.drafts_per_target_pass - without_drafts)
        return min(MOST, gamma_at(gamma, drafts))

    def _resolve_servers(self, world: World) -> int:
        servers, available = self.counts["servers"], len(world.targets)
        if not isinstance(servers, int):
            return self.servers_at(world.ratio, available)
        if servers > available:
            plural = "s" if available > 1 else ""
            raise BadValue(
                f"servers is {servers}, but this world has {available} target "
                f"device{plural}: open it with servers={servers}"
            )
        return servers

    def _resolve_lookahead(self, world: World) -> int:
        lookahead = self.counts["lookahead"]
        if isinstance(lookahead, int):
            return lookahead
        servers = self._resolve_servers(world)
        if servers == 1:
            return 1
        return min(MOST, round_up(world.ratio / servers))


def round_up(ratio: float) -> int:
    """ceil(ratio), at least 1, ignoring rounding errors in the last digits."""
    return max(1, ceil(ratio - 1e-9))


def requested_settings(
    method: str,
    gamma: object,
    settings: Mapping[str, Any],
    caller: Callable[..., object] | None = None,
) -> RequestedSettings:
    """Checks a user's settings for ``method``.

    ``settings``: all settings except ``gamma``. ``caller``: the function that the user
    called; see ``methods.find``.

    Raises SpeclibError for an unknown method or setting, and for a wrong count.
    """
    find(method, settings, caller)
    known = parameters(method)
    if "gamma" not in known and gamma != AUTO:
        raise BadValue(f"method {method!r} has no gamma; leave it out")

    given = {name: settings[name] for name in settings if name in known}
    if "gamma" in known:
        given = {"gamma": gamma, **given}
    counts = {}
    for name in COUNTS:
        if name in known:
            counts[name] = check_count(name, given.get(name, AUTO))
    return RequestedSettings(method, given, counts)


# -- counts ----------------------------------------------------------------------------
def check_count(name: str, value: Any) -> AutoCount:
    """Returns ``value`` if it is a count or "auto"; a gamma may also be "c-2"."""
    if isinstance(value, str):
        if value == AUTO or (name == "gamma" and offset(value) != 0):
            return value
    elif ALLOWED.allows(value):
        number: int = int(value)
        return number

    from_c = ", or an offset from c such as 'c-2'" if name == "gamma" else ""
    raise BadValue(
        f"{name} is {shown(value)}: give {COUNTS[name]} of 1 or more (at most "
        f"{MOST:,}), or 'auto'{from_c}"
    )


def gamma_at(gamma: AutoCount, c: float) -> int:
    """The number for "auto" (round(c)) or "c-2" (round(c) - 2), at least 1."""
    return max(1, round(c) + offset(gamma))


def draft_length(gamma: AutoCount, world: World) -> int:
    """The draft length that ``gamma`` means in an open ``world``, for any method."""
    requested = RequestedSettings("", {}, {"gamma": check_count("gamma", gamma)})
    number: int = requested.resolve(world)["gamma"]
    return number


def offset(gamma: object) -> int:
    """The offset from c: -2 for "c-2", and 0 without an offset."""
    if not isinstance(gamma, str):
        return 0
    match = re.fullmatch(r"c([+-]\d{1,3})", gamma)
    return int(match[1]) if match else 0
