"""What a process of a group of its own connects is led elsewhere: to an address of this machine, and to another host's,
which here is a network namespace behind a cable of its own.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cluster.worlds import LONG_S
from fencepost.clock import eventually
from fencepost.interfaces.network import PacketLoss
from fencepost.model.endpoint import Endpoint
from fencepost.network import redirects
from fencepost.network.packets import TRIAL, PacketFilter
from fencepost.network.redirects import TRIAL_GROUP, Redirect, redirect
from fencepost.processes.owner import ProcessOwner

pytestmark = pytest.mark.cluster
NET = os.getpid() % (1 << 14)  # no other test process has it
HERE, THERE = (f"10.179.{NET >> 6}.{(NET & 63) * 4 + end}" for end in (1, 2))
CABLE = f"fencepost-{NET}"
ANSWER = f"import socket\ns = socket.create_server(({THERE!r}, 0))\nprint(s.getsockname()[1], flush=True)\n" + (
    "while True: s.accept()[0].sendall(b'the broker')"
)
ASK = "import socket, sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).recv(99).decode())"


def ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True, timeout=LONG_S)


@pytest.fixture
def far() -> Iterator[Endpoint]:
    """A broker of another host; it answers with what it is."""
    if lacking := redirects.missing_reason():
        pytest.skip(lacking)
    inside = ("netns", "exec", CABLE)
    ip("netns", "add", CABLE)
    try:
        ip("link", "add", CABLE, "type", "veth", "peer", "name", "there", "netns", CABLE)
        ip("addr", "add", f"{HERE}/30", "dev", CABLE)
        ip("link", "set", CABLE, "up")
        ip(*inside, "ip", "addr", "add", f"{THERE}/30", "dev", "there")
        ip(*inside, "ip", "link", "set", "there", "up")
        argv = ["ip", *inside, sys.executable, "-S", "-c", ANSWER]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as broker:
            assert broker.stdout is not None
            yield Endpoint(THERE, int(broker.stdout.readline()))
            broker.kill()
    finally:
        ip("netns", "del", CABLE, check=False)  # and the cable with it


def asked(there: Endpoint, group: int | None = None) -> str:
    """What answers a process that connects there; empty: nobody, for 2 s."""
    argv = [sys.executable, "-S", "-c", ASK, there.host, str(there.port)]
    groups = [] if group is None else [group]
    return subprocess.run(
        argv, extra_groups=groups, capture_output=True, text=True, timeout=LONG_S, check=False
    ).stdout.strip()


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_packets_to_another_host_are_lost_on_the_way_to_the_proxy_and_nobody_elses(
    far: Endpoint, tmp_path: Path, stream: str
) -> None:
    eventually(lambda: asked(far) == "the broker", LONG_S, "the broker to answer")
    with ProcessOwner.open(tmp_path) as owner, closing(socket.create_server((TRIAL[0], 0))) as proxy:
        at = Endpoint(*proxy.getsockname())
        argv = [sys.executable, "-S", "-c", "import socket\ns = socket.socket(fileno=int(__import__('sys').argv[1]))\n"]
        argv[-1] += "while True: s.accept()[0].sendall(b'the proxy')"
        owner.spawn([*argv, str(proxy.fileno())], log=tmp_path / "log", keep_open=[proxy.fileno()])
        redirect(owner, [Redirect(TRIAL_GROUP, far, at)])
        assert (asked(far), asked(far, TRIAL_GROUP), asked(far, TRIAL_GROUP + 1)) == (
            "the broker",
            "the proxy",
            "the broker",
        )
        packets = PacketFilter(owner)
        rules = packets.lose([PacketLoss("a trial", (at.host, at.port), stream)])
        assert (asked(far), asked(far, TRIAL_GROUP)) == ("the broker", "")
        assert packets.lost()[rules[0]] > 0
        packets.restore(rules)
        assert asked(far, TRIAL_GROUP) == "the proxy"
    assert asked(far, TRIAL_GROUP) == "the broker"
