"""Two network namespaces, and between them a link that is slow and loses packets.

Where the kernel has no netem, a process can be the link: it reads the packets that one
namespace sends, keeps them as long as they are to be under way, drops some, and writes
the others into the other namespace. This needs root and ``/dev/net/tun``.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

NETWORK = "10.77.0"
INTERFACE = "slow0"
BYTES_OF_A_PACKET = 65536

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000


def why_impossible() -> str:
    """Why no such link can be made here; empty if one can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need Linux and root"
    if not Path("/dev/net/tun").exists() or shutil.which("ip") is None:
        return "a link of our own needs /dev/net/tun and the command ip"
    tried = subprocess.run(["ip", "netns", "list"], capture_output=True)
    return "" if tried.returncode == 0 else "ip netns does not work here"


def address_of(number: int) -> str:
    """Of the first or second namespace (0, 1)."""
    return f"{NETWORK}.{number + 1}"


def run_in(namespace: str, command: list[str], **options) -> subprocess.Popen:
    return subprocess.Popen(["ip", "netns", "exec", namespace, *command], **options)


def kill_all_in(namespace: str) -> None:
    """Ends every process of a namespace."""
    listed = subprocess.run(
        ["ip", "netns", "pids", namespace], capture_output=True, text=True
    )
    for pid in listed.stdout.split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def run_ip(namespace: str, *arguments: str) -> None:
    """Runs the command ``ip`` in a namespace."""
    command = ["ip", "netns", "exec", namespace, "ip", *arguments]
    subprocess.run(command, check=True)


@contextmanager
def two_namespaces(delay: float, loss: float) -> Iterator[tuple[str, str]]:
    """The names of two namespaces; a packet takes ``delay`` seconds from one to the
    other, and of all packets a share of ``loss`` is lost."""
    names = (f"speclib-{os.getpid()}-a", f"speclib-{os.getpid()}-b")
    link = None
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        link = subprocess.Popen(
            [sys.executable, __file__, *names, str(delay), str(loss)],
            stdout=subprocess.PIPE,
        )
        assert link.stdout is not None
        assert link.stdout.readline() == b"open\n"

        for number, name in enumerate(names):
            run_ip(name, "link", "set", "lo", "up")
            run_ip(name, "addr", "add", f"{address_of(number)}/24", "dev", INTERFACE)
            run_ip(name, "link", "set", INTERFACE, "up")
        yield names

    finally:
        for name in names:
            kill_all_in(name)
        if link is not None:
            link.kill()
            link.wait()
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


# -- the process that is the link ------------------------------------------------------
def open_end(namespace: str) -> int:
    """The file through which a namespace's packets go out and come in."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    request = struct.pack("16sH22x", INTERFACE.encode(), IFF_TUN | IFF_NO_PI)
    fcntl.ioctl(end, TUNSETIFF, request)
    return end


def carry(ends: tuple[int, int], delay: float, loss: float) -> None:
    """Carries packets both ways, for ever."""
    chance = random.Random(1)
    number = count()
    under_way: list[tuple[float, int, int, bytes]] = []
    while True:
        patience = None
        if under_way:
            patience = max(0.0, under_way[0][0] - time.monotonic())
        ready, _, _ = select.select(ends, [], [], patience)

        for end in ready:
            packet = os.read(end, BYTES_OF_A_PACKET)
            far_end = ends[1] if end == ends[0] else ends[0]
            if chance.random() >= loss:
                due = time.monotonic() + delay
                heapq.heappush(under_way, (due, next(number), far_end, packet))

        while under_way and under_way[0][0] <= time.monotonic():
            _, _, far_end, packet = heapq.heappop(under_way)
            with suppress(OSError):  # that end is not up yet: the packet is lost
                os.write(far_end, packet)


if __name__ == "__main__":
    both = (open_end(sys.argv[1]), open_end(sys.argv[2]))
    print("open", flush=True)
    carry(both, float(sys.argv[3]), float(sys.argv[4]))
