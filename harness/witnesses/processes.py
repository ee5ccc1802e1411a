"""The kernel's view of processes that faults hit: a process of a node, identified by pid and start time."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet

import psutil

from fencepost.interfaces import FaultContext, Target
from fencepost.interfaces.process import ExternalNode, Node
from fencepost.witnesses.base import Observation

STOPPED = "stopped"
GONE = "gone"
REAP_S = 1.0
KILLED_S = 5.0
_ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


@dataclass(frozen=True, eq=False)
class ProcessIdentity:
    """A process of a node, as it was seen once. A pid may be reused, but not together with the start time.

    Attributes:
        pid: None when the node had no process at that moment.
    """

    node: Node
    pid: int | None
    born: float = 0.0

    @classmethod
    def of(cls, node: Node) -> ProcessIdentity:
        """The present process of ``node``."""
        pid = node.pid
        if pid is None:
            return cls(node, None)
        try:
            return cls(node, pid, psutil.Process(pid).create_time())
        except psutil.NoSuchProcess:
            return cls(node, None)

    def __str__(self) -> str:
        return f"{self.node.name} (pid {self.pid})"

    def state(self) -> str:
        """``stopped`` (with all that it forked), ``gone`` (ended, reaped or not), or the kernel's word for a process
        that runs or can run."""
        if self.pid is None:
            return GONE
        try:
            process = psutil.Process(self.pid)
            status = str(process.status())
            if status in _ENDED or process.create_time() != self.born:
                return GONE
            if frozen(self.pid):
                return STOPPED
            return next(_awake(process), status) if status == STOPPED else status
        except psutil.NoSuchProcess:
            return GONE


def _awake(process: psutil.Process) -> Iterator[str]:
    """The states of processes that a process forked into its own process group, and that are not stopped."""
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            status = str(child.status())
            if status not in (STOPPED, *_ENDED) and os.getpgid(child.pid) == os.getpgid(process.pid):
                yield status


class SuspendHold:
    """Keeps a process stopped. If several stops overlap, the last one to let go continues it."""

    def __init__(self, life: ProcessIdentity) -> None:
        """Stop the process, whether it runs or not."""
        self._life = life
        _stops[life.pid, life.born].add(self)
        life.node.signal(signal.SIGSTOP)

    def let_go(self) -> None:
        """Continue the process if no other ``SuspendHold`` holds it. May be called twice."""
        _stops[self._life.pid, self._life.born].discard(self)
        if not kept_stopped(self._life):
            self._life.node.signal(signal.SIGCONT)


_stops: defaultdict[tuple[int | None, float], WeakSet[SuspendHold]] = defaultdict(WeakSet)  # by pid and birth


def kept_stopped(life: ProcessIdentity) -> bool:
    """Whether a ``SuspendHold`` holds it."""
    return bool(_stops[life.pid, life.born])


def frozen(pid: int) -> bool:
    """Whether the kernel has frozen the control group of a process, as ``docker pause`` does."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "freezer":
                return Path(f"/sys/fs/cgroup/freezer{path}/freezer.state").read_text().strip() == "FROZEN"
            if not controllers:
                events = Path(f"/sys/fs/cgroup{path}/cgroup.events")
                if path != "/" and events.exists() and "frozen 1" in events.read_text():
                    return True
    return False


def nodes_of(world: FaultContext, target: Target) -> list[Node]:
    """The nodes that a target names, members first."""
    return [world.members[m] for m in target.members] + [world.cluster.brokers[b] for b in target.brokers]


def lives_of(world: FaultContext, target: Target) -> tuple[ProcessIdentity, ...]:
    """The present processes of the nodes that a target names."""
    return tuple(ProcessIdentity.of(node) for node in nodes_of(world, target))


def running(nodes: Mapping[int, Node]) -> set[int]:
    """The numbers of nodes that run; nodes that others operate count as running, as their state is unknown."""
    return {
        n
        for n, node in nodes.items()
        if isinstance(node, ExternalNode) or ProcessIdentity.of(node).state() not in (GONE, STOPPED)
    }


def pids(lives: Iterable[ProcessIdentity]) -> dict[str, int | None]:
    """Their pids by name, for evidence."""
    return {life.node.name: life.pid for life in lives}


def ended(lives: Sequence[ProcessIdentity], ways: Mapping[int, str]) -> Observation:
    """Whether all of them ended with one of the exit codes of ``ways`` (exit code to its meaning in words).

    It reaps the ended processes, through their nodes.
    """
    alive = [f"{life} is {life.state()}" for life in lives if life.state() != GONE]
    absent = [f"{life.node.name} had no process to hit" for life in lives if life.pid is None]
    if alive or absent or not lives:
        return Observation("; ".join(absent + alive) or "nothing was hit", data={"pids": pids(lives)})
    codes = {life: life.node.wait_ended(REAP_S) for life in lives}
    data = {"pids": pids(lives), "exit_codes": {life.node.name: code for life, code in codes.items()}}
    other = [f"{life} ended with exit code {code}" for life, code in codes.items() if code not in ways]
    return Observation(
        "; ".join(other), "; ".join(f"{life} ended {ways.get(code)}" for life, code in codes.items()), data
    )


def kill_late(lives: Iterable[ProcessIdentity]) -> None:
    """Kill processes that were asked to end and still run; one that is stopped cannot have noticed yet."""
    for life in lives:
        if life.state() not in (GONE, STOPPED):
            _kill(life)


def _kill(life: ProcessIdentity) -> None:
    life.node.signal(signal.SIGKILL)
    life.node.wait_ended(KILLED_S)


def start_again(lives: Sequence[ProcessIdentity]) -> None:
    """Start a new process of each node. A process that has not ended as requested is killed first."""
    for life in lives:
        if life.state() != GONE:
            _kill(life)
        life.node.start()


def reborn(lives: Sequence[ProcessIdentity]) -> Observation:
    """Whether each node has a new process, and it runs."""
    now = {life: ProcessIdentity.of(life.node) for life in lives}
    ill = [
        f"{life} has no new process that runs"
        for life, present in now.items()
        if (present.pid, present.born) == (life.pid, life.born) or present.state() in (GONE, STOPPED)
    ]
    data = {"pids": pids(now.values()), "before": pids(lives)}
    return Observation("; ".join(ill), f"new process: {', '.join(map(str, now.values()))}", data)
