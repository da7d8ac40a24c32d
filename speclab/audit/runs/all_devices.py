"""What plain decoding could do with all devices that a method reserves.

The numbers are those of our cost model of several GPUs, and no measurement of theirs.
"""

from __future__ import annotations

from speclab.audit.quantity import Quantities, Quantity
from speclab.papers.load_papers import load_paper
from speclab.theory.dsi_accounting import dsi_bound
from speclab.theory.hardware import load_hardware
from speclib.data.latency import load_latency
from speclib.errors import BadValue

from .dsi_charges import RowOfTable1


def _gain_on_all_devices(latency: str, servers: int) -> Quantities:
    """Plain decoding on all devices that a method reserves, over it on the target's."""
    hardware = load_hardware(latency)
    if hardware is None:
        raise BadValue(f"data/hardware says nothing of {latency!r}")
    devices = hardware.devices(drafts=True, servers=servers)
    seconds = load_latency(latency).target(1)
    gain = hardware.plain_pass(seconds).gain(devices)
    return {
        "devices": Quantity.exact(devices),
        "plain decoding on all devices": Quantity.exact(gain),
    }


def pearl_on_its_devices(requests: int, latency: str, column: str) -> Quantities:
    """PEARL's printed speed-up, beside plain decoding on all its devices."""
    printed = load_paper("pearl").printed("table-1", "PEARL (ours)", column)
    if printed is None:
        raise BadValue(f"PEARL's Table 1 has no column {column!r}")
    return _gain_on_all_devices(latency, servers=1) | {
        "printed speed-up": Quantity.exact(printed, "paper")
    }


def dsi_on_its_devices(requests: int, latency: str, row: str) -> Quantities:
    """Proposition 1's time for a row of Table 1, beside plain decoding on all devices.

    The devices are those of the protocol, a drafter and seven target servers.
    """
    servers = load_paper("dsi").facts["protocol"]["most_servers"]
    printed = RowOfTable1(row)
    seconds = dsi_bound(printed.share, printed.alpha, printed.tokens)
    gain = printed.tokens / float(seconds)
    return _gain_on_all_devices(latency, servers) | {
        "DSI over plain decoding": Quantity.exact(gain)
    }
