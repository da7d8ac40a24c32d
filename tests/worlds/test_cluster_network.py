"""Two machines in all but name: a link of 20 ms that loses one packet in a hundred.

Each node of the cluster is in a network namespace with an address of its own.
"""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from helpers import slow_link

from speclib.methods import METHODS, takes_gamma

ray = pytest.importorskip("ray", reason="the extra `cluster` is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(slow_link.why_impossible()), reason=slow_link.why_impossible() or "-"
    ),
]

DELAY = 0.02  # seconds, one way
LOSS = 0.01
RAY = str(Path(sys.executable).with_name("ray"))
ON_EVERY_NODE = ["--num-cpus=1", "--include-log-monitor=false"]
RUN = """
import json, sys
import speclib
from speclib.data.latency import Latency
from speclib.worlds.cluster.cluster_world import Cluster

methods, vocab, seconds, asked = json.loads(sys.argv[1])
LATENCY = Latency.ratio(4, seconds)
TARGET = {"model": "toy", "vocab": vocab}
PAIR = speclib.pair(TARGET, TARGET | {"alpha": 0.8})

rows = []
with Cluster(PAIR, emulate=LATENCY) as world:
    message = {name: clock.error for name, clock in world.clocks.items()}
    slow = LATENCY.over_network(message["draft"], message["target"])
    for method, settings in methods.items():
        request = {"method": method, "ignore_eos": True, **settings, **asked}
        result = speclib.decode("x", world=world, **request)
        row = {"method": method, "tokens": result.tokens, "message": message}
        row["nodes"] = result.trace.meta["nodes"]
        row["measured"] = result.trace.commits[-1].end
        for name, latency in (("predicted", slow), ("without", LATENCY)):
            with speclib.open_world(
                "virtual", PAIR, latency=latency, cancel="after-op"
            ) as virtual:
                expected = speclib.decode("x", world=virtual, **request)
            row[name] = expected.trace.commits[-1].end
            row["expected"] = expected.tokens
        rows.append(row)
print(json.dumps(rows))
"""
FEW = {
    "autoregressive": {},
    "speculative": {"gamma": 4},
    "pearl": {"gamma": 4},
    "dsi": {"lookahead": 2},
}
ALL = {method: {"gamma": 4} if takes_gamma(method) else {} for method in METHODS}


def over_the_link(
    methods: dict, vocab: int = 1000, seconds: float = 0.8, **asked
) -> list[dict]:
    """What each of ``methods`` wrote with its target behind the link, and when.

    ``seconds``: of a target pass.
    """
    head, other = slow_link.address_of(0), slow_link.address_of(1)
    near = ["--head", f"--node-ip-address={head}", "--port=6379", "--node-name=near"]
    near += ["--include-dashboard=false", "--no-monitor"]
    far = [f"--address={head}:6379", f"--node-ip-address={other}", "--node-name=far"]
    # Addresses of sockets are short, so that the folder cannot be just anywhere.
    with (
        tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder,
        slow_link.two_namespaces(DELAY, LOSS) as (first, second),
    ):
        # There is a token, so the first node asks for it, and only others must be told.
        token = {"RAY_AUTH_TOKEN": secrets.token_hex(16)}
        settings = {"RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0"}
        env = os.environ | token | settings
        for namespace, arguments, told in (
            (first, near, {}),
            (second, far, {"RAY_AUTH_MODE": "token"}),
        ):
            command = [RAY, "start", *ON_EVERY_NODE, *arguments]
            started = slow_link.run_in(
                namespace, command, env=env | told, stdout=subprocess.DEVNULL
            )
            assert started.wait(timeout=120) == 0
        what = json.dumps([methods, vocab, seconds, asked])
        ran = slow_link.run_in(
            first,
            [sys.executable, "-c", textwrap.dedent(RUN), what],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        output, _ = ran.communicate(timeout=480)
        assert ran.returncode == 0
        return json.loads(output.splitlines()[-1])


@pytest.fixture(scope="module")
def rows():
    """What a few methods wrote, with passes as short as a message.

    So several messages are under way at once.
    """
    return over_the_link(FEW, seconds=0.02, max_new_tokens=25)


def test_the_devices_are_on_both_nodes_and_messages_take_what_the_link_takes(rows):
    for row in rows:
        assert set(row["nodes"].values()) == {"near", "far"}
        message_of_node = {row["nodes"][d]: row["message"][d] for d in row["nodes"]}
        assert message_of_node["near"] < DELAY / 2
        assert DELAY < message_of_node["far"] < 1.5 * DELAY


def test_methods_are_exact_over_a_link_that_is_slow_and_loses_packets(rows):
    plain = rows[0]["tokens"]
    assert len(rows) == 4
    assert len(plain) == 25
    for row in rows:
        assert row["tokens"] == row["expected"] == plain, row["method"]


@pytest.mark.thorough
def test_every_method_is_exact_and_takes_as_long_as_predicted():
    """A lost packet is sent again 0.2 s or more later, which is not predicted."""
    rows = over_the_link(ALL, max_new_tokens=10)
    assert len(rows) == len(METHODS)
    for row in rows:
        assert row["tokens"] == row["expected"], row
        assert len(row["tokens"]) == 10, row
        assert row["measured"] == pytest.approx(row["predicted"], rel=0.1), row
        assert row["measured"] > row["without"]
