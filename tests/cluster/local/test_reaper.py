"""Nothing outlives its owner: the harness is ended in every way and at several moments, and then we look."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from cluster.killing import iptables, rules_of
from fencepost.clock import eventually
from fencepost.clusters.addresses import Addresses
from fencepost.errors import ClusterError
from fencepost.interfaces.network import PacketLoss
from fencepost.network import packets
from fencepost.network.packets import PacketFilter
from fencepost.network.redirects import TRIAL_GROUP
from fencepost.processes import reaper
from fencepost.processes.owner import ProcessOwner, sweep

pytestmark = pytest.mark.cluster

LONG_S = 60  # for what comes at once on a machine that has nothing else to do

# A harness of its own: says how far it is, then waits to be killed.
HARNESS = """
import signal, sys, threading
from pathlib import Path
from fencepost.clusters import local
from fencepost.model.endpoint import Endpoint
from fencepost.interfaces import ClusterSpec
from fencepost.network.packets import TRIAL, PacketFilter
from fencepost.network.redirects import TRIAL_GROUP, Redirect, redirect
from fencepost.interfaces.network import PacketLoss
from fencepost.processes.owner import ProcessOwner

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it

def say(*words):
    print(*words, flush=True)

with ProcessOwner.open(Path(sys.argv[1])) as owner:
    say("owner", owner.token, owner.directory)
    if sys.argv[2] == "leads connections":
        redirect(owner, [Redirect(TRIAL_GROUP, Endpoint(*TRIAL), Endpoint(*TRIAL))])
        say("led")
        signal.pause()
    if sys.argv[2] == "changes rules":
        packets = PacketFilter(owner)
        while True:
            losses = [PacketLoss("a trial", TRIAL, stream) for stream in ("upstream", "downstream")]
            packets.restore(packets.lose(losses))
    cluster = local.start(ClusterSpec(brokers=1, slots=1), owner)
    if sys.argv[2] == "paused":
        cluster.brokers[1].signal(signal.SIGSTOP)
    if sys.argv[2] == "loses packets":
        cluster.packets.lose([PacketLoss("a trial", cluster.links.endpoint(0, 1), "upstream")])
    say("serving", cluster.links.endpoint(0, 1)[0])
    threading.Event().wait()
"""


@dataclass
class Harness:
    """A harness in a process of its own, and what it told of itself."""

    process: subprocess.Popen[str]
    token: str
    directory: Path

    def carriers(self) -> list[psutil.Process]:
        return list(reaper.owned(self.token))

    def line(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def die_with_reaper(self) -> None:
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):  # what changes rules lives for a moment
                if "reaper.py" in " ".join(child.cmdline()):
                    child.kill()
        self.process.kill()
        self.process.wait()

    def nothing_is_left(self) -> bool:
        return not self.directory.exists() and not self.carriers() and not self.rules()

    def rules(self) -> list[str]:
        """What the packet filter has of its own: hook, chain, rules."""
        return rules_of(self.token)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Harness]]:
    running: list[subprocess.Popen[str]] = []

    def begin(how: str) -> Harness:
        argv = [sys.executable, "-c", HARNESS, str(tmp_path), how]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
        running.append(process)
        harness = Harness(process, "", Path())
        _, harness.token, directory = harness.line()
        harness.directory = Path(directory)
        return harness

    yield begin
    for process in running:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def address_is_free(host: str, of: Harness) -> bool:
    """Whether nobody has it, or by now somebody else: other tests start clusters at the same time."""
    name = Addresses(int(host.split(".")[2])).name.replace("\0", "@")
    lines = Path("/proc/net/unix").read_text().splitlines()
    held = {f"socket:[{line.split()[6]}]" for line in lines if line.endswith(name)}
    holders = {pid for pid in psutil.pids() if held & open_files(pid)}
    return not held or bool(holders - {of.process.pid, *(process.pid for process in of.carriers())})


def open_files(pid: int) -> set[str]:
    """What the descriptors of a process lead to; nothing of one that has gone."""
    with suppress(OSError):
        return {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
    return set()


@pytest.mark.parametrize("processes", [0, 1, 3])
def test_a_harness_killed_while_it_starts_processes_leaves_nothing(
    start: Callable[[str], Harness], processes: int
) -> None:
    harness = start("plain")
    eventually(lambda: len(harness.carriers()) >= processes, LONG_S, f"{processes} processes", every_s=0.001)
    harness.process.kill()
    eventually(
        harness.nothing_is_left, LONG_S, "the reaper to remove everything", state=lambda: str(harness.carriers())
    )


@pytest.mark.parametrize(
    ("number", "broker"),
    [
        (signal.SIGKILL, "plain"),
        pytest.param(signal.SIGKILL, "paused", marks=pytest.mark.core),
        (signal.SIGTERM, "plain"),
        (signal.SIGINT, "paused"),
    ],
)
def test_a_harness_ended_while_its_cluster_serves_leaves_nothing(
    start: Callable[[str], Harness], number: signal.Signals, broker: str
) -> None:
    harness = start(broker)
    _, host = harness.line()
    assert len(harness.carriers()) == 3  # controller, broker, Toxiproxy
    assert not address_is_free(host, harness)
    os.killpg(harness.process.pid, number)  # the whole group, as Ctrl-C at a terminal does
    eventually(
        harness.nothing_is_left, LONG_S, "the reaper to remove everything", state=lambda: str(harness.carriers())
    )
    eventually(lambda: address_is_free(host, harness), LONG_S, f"the address {host} to be free")


@pytest.mark.usefixtures("packets_work")
def test_a_harness_killed_while_packets_are_lost_leaves_no_rule(start: Callable[[str], Harness]) -> None:
    harness = start("loses packets")
    harness.line()
    assert len(harness.rules()) == 3  # the chain, its hook, one rule
    harness.process.kill()
    eventually(harness.nothing_is_left, LONG_S, "the reaper to remove everything", state=lambda: str(harness.rules()))


@pytest.mark.usefixtures("packets_work")
@pytest.mark.parametrize("lines", [0, 2, 4])
def test_a_harness_killed_while_it_changes_rules_leaves_none(start: Callable[[str], Harness], lines: int) -> None:
    harness = start("changes rules")
    eventually(lambda: len(harness.rules()) >= lines, LONG_S, f"{lines} lines of rules", every_s=0.001)
    harness.process.kill()
    eventually(harness.nothing_is_left, LONG_S, "the reaper to remove everything", state=lambda: str(harness.rules()))


@pytest.mark.usefixtures("packets_work")
def test_rules_that_an_owner_and_its_reaper_left_are_swept(start: Callable[[str], Harness], tmp_path: Path) -> None:
    harness = start("changes rules")
    eventually(harness.rules, LONG_S, "rules")
    harness.die_with_reaper()
    assert harness.rules()
    # What was just being started holds the lock of the directory until it is executed.
    eventually(lambda: sweep(tmp_path) == [harness.directory], LONG_S, "the directory to be unlocked and swept")
    assert harness.nothing_is_left()


@pytest.mark.usefixtures("packets_work")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_leads_connections_elsewhere_goes_with_its_harness(
    start: Callable[[str], Harness], number: signal.Signals
) -> None:
    harness = start("leads connections")
    assert harness.line() == ["led"]
    assert any(str(TRIAL_GROUP) in rule for rule in harness.rules())
    harness.process.send_signal(number)
    eventually(harness.nothing_is_left, LONG_S, "the reaper to remove everything")


@pytest.mark.usefixtures("packets_work")
def test_a_chain_that_stays_is_told_and_removed_by_the_next_owner(tmp_path: Path) -> None:
    owner = ProcessOwner.open(tmp_path)
    PacketFilter(owner).lose([PacketLoss("a trial", packets.TRIAL, "upstream")])
    chain, other = reaper.chain_of(owner.token), f"OTHER-{owner.token}"
    iptables("-N", other)
    try:
        iptables("-A", other, "-j", chain)  # a chain that somebody leads into cannot be removed
        with pytest.raises(ClusterError, match=f"iptables keeps the chain {chain}"):
            owner.close()
    finally:
        iptables("-F", other)
        iptables("-X", other)
    assert chain in iptables("-S")
    assert sweep(tmp_path) == [owner.directory]
    assert chain not in iptables("-S")
    assert not owner.directory.exists()


def test_what_an_owner_and_its_reaper_left_when_both_died_is_swept_by_the_next_one(
    start: Callable[[str], Harness], tmp_path: Path
) -> None:
    harness = start("paused")
    _, host = harness.line()
    harness.die_with_reaper()
    assert len(harness.carriers()) == 3
    with ProcessOwner.open(tmp_path) as owner:
        assert owner.directory.is_dir()
        assert harness.nothing_is_left()
        # A process that is killed gives its memory back before its files.
        eventually(lambda: address_is_free(host, harness), LONG_S, f"the address {host} to be free")


@pytest.mark.core
def test_an_owner_that_lives_is_not_swept(tmp_path: Path) -> None:
    (tmp_path / "fencepost-notes").mkdir()  # a folder of the user's own
    with ProcessOwner.open(tmp_path) as owner:
        sleeper = owner.spawn(["sleep", "600"], log=owner.directory / "log")
        assert sweep(tmp_path) == []
        assert sleeper.poll() is None
        assert owner.directory.is_dir()
    assert sleeper.poll() == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["fencepost-notes"]


@pytest.mark.core
def test_children_of_children_and_frozen_ones_go_too(tmp_path: Path) -> None:
    with ProcessOwner.open(tmp_path) as owner:
        log = owner.directory / "log"
        shell = owner.spawn(["sh", "-c", "setsid sleep 610 & setsid sleep 620 & wait"], log=log)
        family = eventually(lambda: len(found := shell.children()) == 2 and found, LONG_S, "two children")
        family[0].suspend()
        shell.suspend()
    assert not [child for child in family if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.core
def test_the_processes_of_an_owner_within_an_owner_go_too(tmp_path: Path) -> None:
    nested = (
        "from fencepost.processes.owner import ProcessOwner; o = ProcessOwner.open();"
        "o.spawn(['sleep', '640'], log=o.directory / 'log');"
    )
    with ProcessOwner.open(tmp_path) as owner:
        inner = owner.spawn([sys.executable, "-c", nested + "import signal; signal.pause()"], log=tmp_path / "log")
        sleeper = eventually(
            lambda: next((c for c in inner.children() if c.name() == "sleep"), None), LONG_S, "a grandchild"
        )
    eventually(lambda: not sleeper.is_running(), LONG_S, "the inner reaper to kill what the inner owner left")


@pytest.mark.core
def test_a_program_that_wipes_its_environment_ends_with_its_owner(tmp_path: Path) -> None:
    with ProcessOwner.open(tmp_path) as owner:
        wiped = owner.spawn(["env", "-i", "sleep", "630"], log=owner.directory / "log")
        eventually(lambda: wiped.name() == "sleep", LONG_S, "the program to run")
    assert wiped.poll() == -signal.SIGKILL
