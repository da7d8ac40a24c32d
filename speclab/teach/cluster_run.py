"""Several machines in all but name: nodes of a Ray cluster on this one, by a click.

Each device is a process on a node of its own. Tokens come from real models, and each
pass waits as long as a latency file says. Messages between the nodes are Ray's own, so
that their times, and how well the clocks agree, are measured.

Ray is an extra. Without it the button says how to get it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from statistics import median
from threading import Thread
from typing import TYPE_CHECKING, Any

from speclib.arguments import Count, checked
from speclib.data.latency import Latency, load_latency
from speclib.data.pairs import load_pair
from speclib.decoding.decode import Result, decode
from speclib.drawing.numbers import MILLISECONDS, SECONDS, duration
from speclib.errors import BadValue, how_to_install, unknown_name
from speclib.methods import METHODS, about

from .real_run import DEFAULT_METHODS, RealRun

if TYPE_CHECKING:
    from speclab.laptop_cluster import LaptopNodes
    from speclib.worlds.cluster.cluster_world import Cluster

NOT_RUN_YET = (
    "Not run yet. The button starts a Ray cluster whose nodes are all on this machine, "
    "and ends it again. On two cores of a CPU that takes about a minute."
)
WITHOUT_RAY = (
    "This needs Ray, which is not installed: "
    f"{how_to_install('cluster')}. Restart the kernel then. Everything else in this "
    "lesson works without it."
)
SECONDS_TO_ANSWER = 30.0  # a node that is gone is noticed sooner


class ClusterRun(RealRun):
    """Methods run on nodes of a cluster, a device on each, and their timeline.

    ``kills``: the last run is repeated, and a node with a target is killed in it.
    """

    not_run_yet = NOT_RUN_YET

    def __init__(
        self,
        prompt: Any,
        pair: str,
        methods: Sequence[str],
        max_new_tokens: int,
        latency: Latency,
        servers: int,
        kills: bool,
    ):
        self.latency = latency
        self.servers = servers
        self.kills = kills
        self.killed = ""
        if not has_ray():
            self.not_run_yet = f"Not run yet. {WITHOUT_RAY}"
        super().__init__(prompt, pair, methods, max_new_tokens)

    def work(self) -> str:
        """Starts the nodes, runs one method after the other, and ends the nodes."""
        if not has_ray():
            return WITHOUT_RAY
        from speclab.laptop_cluster import laptop_nodes
        from speclib.worlds.cluster.cluster_world import Cluster

        self.runs, self.labels, self.killed = [], None, ""
        names = [f"node-{number}" for number in range(1, self.servers + 2)]
        self.say(f"Starting {len(names)} nodes of a Ray cluster on this machine.")
        with laptop_nodes(names) as nodes:
            self.say("Starting a process for each device, on a node of its own.")
            with Cluster(
                load_pair(self.pair),
                servers=self.servers,
                cancel="immediate",
                emulate=self.latency,
                timeout=SECONDS_TO_ANSWER,
                address=nodes.address,
            ) as world:
                self._run_methods(world)
                if self.kills and not self.is_stopped:
                    self._run_with_a_death(world, nodes)
            self.say("Ending the nodes.")
        return self._outcome()

    def _run_methods(self, world: Cluster) -> None:
        for method in self.methods:
            if self.is_stopped:
                return
            self.say(f"{about(method).name} is writing.")
            self.runs.append(self._decode(world, method))
            self._show()

    def _run_with_a_death(self, world: Cluster, nodes: LaptopNodes) -> None:
        """The last method once more; after a third of the text a node is killed."""
        healthy = self.runs[-1]
        victim = node_to_kill(healthy.trace.meta["nodes"], nodes.names[0])
        killing = Thread(target=nodes.kill, args=(victim,), daemon=True)
        written = 0

        def kill_after_a_third(tokens: tuple[int, ...]) -> None:
            nonlocal written
            written += len(tokens)
            if written >= self.max_new_tokens / 3 and killing.ident is None:
                killing.start()

        self.say(f"It writes once more, and {victim} is killed meanwhile.")
        dying = self._decode(world, self.methods[-1], kill_after_a_third)
        killing.join()
        self.killed, self.everybody = victim, "All runs"
        self.runs.append(dying)
        self.labels = [None] * (len(self.runs) - 2)
        self.labels += ["all nodes alive", f"{victim} is killed"]
        self._show()

    def _decode(self, world: Cluster, method: str, on_commit: Any = None) -> Result:
        return decode(
            self.prompt,
            world=world,
            method=method,
            max_new_tokens=self.max_new_tokens,
            ignore_eos=True,
            on_commit=on_commit,
        )

    def _outcome(self) -> str:
        """What the network took, what was lost, and whether the texts are the same."""
        if not self.runs:
            return super()._outcome()
        lines = [network_in_words(self.runs), super()._outcome()]
        if self.killed:
            lines.insert(0, self._death_in_words())
        return " ".join(lines)

    def _death_in_words(self) -> str:
        dying = self.runs[-1]
        lost = [event for event in dying.trace.operations if event.lost]
        if not lost:
            return f"{self.killed} was killed, and nobody waited for its answers."
        missed = duration(lost[0].dur, SECONDS)
        return (
            f"{self.killed} was killed, and {lost[0].device} with it. That it is gone "
            f"was known {missed} after its last pass had begun."
        )


def has_ray() -> bool:
    """Whether Ray is installed."""
    return find_spec("ray") is not None


def node_to_kill(node_of_device: dict[str, str], first_node: str) -> str:
    """A node that has a target on it, and is not the one that we have joined through.

    Raises BadValue where there is none, which is so with one target only.
    """
    for device, node in node_of_device.items():
        if device.startswith("target") and node != first_node:
            return node
    raise BadValue(f"no target is on another node than {first_node!r}")


def network_in_words(runs: Sequence[Result]) -> str:
    """What messages took in ``runs``, and how well the clocks of the nodes agree."""
    on_the_way = []
    clock_errors = []
    for run in runs:
        clock_errors += run.trace.meta["clock_error"].values()
        for event in run.trace.operations:
            if not event.lost:
                on_the_way.append(event.message_seconds)
    both_ways = duration(median(on_the_way), MILLISECONDS)
    error = duration(max(clock_errors), MILLISECONDS)
    return (
        f"A question and its answer were on their way for {both_ways} together, in the "
        f"median; the nodes' clocks agree to ± {error}."
    )


@checked
def cluster_run(
    prompt: Any,
    pair: str,
    *,
    latency: str,
    methods: Sequence[str] = DEFAULT_METHODS,
    max_new_tokens: Count = 12,
    servers: Count = 1,
    kill_a_node: bool = False,
) -> ClusterRun:
    """A button that decodes ``prompt`` on the nodes of a cluster on this machine.

    There is a node for the draft, and one for each of ``servers`` targets. ``latency``:
    how long passes last, a path under data/latency. ``kill_a_node``: the last method
    runs twice, and in the second run a node is killed; it needs a method that goes on
    without, and two servers.

    Raises SpeclibError at once for a pair, a latency file or a method that is not
    there, and where nothing could go on without the node that is killed.
    """
    for method in methods:
        if method not in METHODS:
            raise unknown_name(f"no method {method!r}", method, METHODS)
    if kill_a_node and (servers < 2 or methods[-1] != "dsi"):
        raise BadValue(
            "kill_a_node needs a method that goes on without a target: let 'dsi' be "
            "the last of methods, and servers at least 2"
        )
    load_pair(pair)
    durations = load_latency(latency)
    return ClusterRun(
        prompt, pair, methods, max_new_tokens, durations, servers, kill_a_node
    )
