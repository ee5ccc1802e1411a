"""The contracts of processes, of what starts them (this machine, or a container), and of the nodes that faults hit."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fencepost.model.clients import Client


class Process(Protocol):
    """One life of a member, a broker or a tool. ``psutil.Popen`` is one."""

    @property
    def pid(self) -> int:
        """Its process id on this machine."""

    def poll(self) -> int | None:
        """Its exit code (negative: the number of the signal that killed it); None while it lives."""

    def send_signal(self, sig: int) -> None:
        """Send it a signal. SIGSTOP and SIGCONT may be done otherwise, as long as nothing of it runs in between."""

    def status(self) -> str:
        """The kernel's word for its state."""


class Spawn(Protocol):
    """Starts processes in one place, each with its stdout and stderr appended to its log."""

    def __call__(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Process:
        """Start one and return at once; ``env`` is on top of what processes have there."""


class MemberSpawn(Protocol):
    """Starts the process of a member; it has to see the owner's directory, and write below ``history``."""

    def __call__(
        self, argv: Sequence[str | Path], *, log: Path, env: Mapping[str, str], history: Path, image: str
    ) -> Process:
        """As ``Spawn``. ``image``: of the user's; empty: ours."""


@dataclass(frozen=True)
class Environment:
    """What members are to run on: a client library, of a release, on a Python.

    Attributes:
        client: without a version, the one that is installed beside Fencepost.
        python: its version (``3.9``, ``3.9.18``); empty: the harness's own Python.
        image: of the user's containers, in which everything is; empty: there is none.
    """

    client: Client = field(default_factory=lambda: Client("confluent-kafka"))
    python: str = ""
    image: str = ""

    @property
    def own(self) -> bool:
        """Whether it is another one than the harness's, and has to be made."""
        return bool(self.client.version or self.python)


@dataclass(frozen=True)
class Interpreter:
    """The Python that a member runs on, ours by default.

    Attributes:
        import_path: where it finds its client library when that is not installed in it.
        spawn: starts its processes where they live; None: on this machine.
        command: a program that is the member itself, started in the current directory; empty: ours.
        lines: the program is not instrumented: it tells what it does, see ``fencepost_member.lines``.
        silent: nor does it tell anything.
        image: where it is to be found; empty: where ``spawn`` starts our members.
        groups: supplementary groups of its processes on this machine.
    """

    python: str = sys.executable
    import_path: tuple[Path, ...] = ()
    spawn: MemberSpawn | None = None
    command: tuple[str, ...] = ()
    lines: bool = False
    silent: bool = False
    image: str = ""
    groups: tuple[int, ...] = ()


class Node(Protocol):
    """A process that faults can hit: a member or a broker. Faults know no other way to touch processes."""

    @property
    def name(self) -> str:
        """``member-2`` or ``broker-1``; stays the same over restarts."""

    @property
    def pid(self) -> int | None:
        """Process id of the present life; None when there is none. A new life has a new pid."""

    def start(self) -> None:
        """Begin a new life and return once it serves (broker) or its loop runs (member). No-op when alive."""

    def signal(self, signal: int) -> None:
        """Send a signal to the present life (SIGTERM asks for a clean end); nothing happens when there is none. What
        stops, continues or kills a program of the user's does so with all that it forked."""

    def wait_ended(self, within_s: float) -> int:
        """Wait for the present life to end, reap it and return its exit code (negative: the signal's number)."""


@runtime_checkable
class Foreign(Protocol):
    """A node that others run: nothing here sees its process, or ends or stops it."""

    @property
    def endpoint(self) -> tuple[str, int]:
        """Where it listens for clients."""


class Member(Node, Protocol):
    """A member as faults know it."""

    @property
    def slot(self) -> int:
        """The slot in which it lives."""

    def launch(self, **changes: Any) -> None:
        """Begin a new life, configured as ever but for ``changes``, without waiting for it. No-op when alive."""

    def adopt(self, **changes: Any) -> None:
        """Begin a new life as ``launch`` does; later ones are configured like it."""

    def reconfigure(self, **changes: Any) -> None:
        """Have the present life go on configured as it began but for ``changes``. No-op unless its loop runs."""

    def told(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """The events of a kind (``history.EventKind``) that its present or last life has told so far, in order."""


@runtime_checkable
class Supervised(Protocol):
    """A workload whose members a supervisor watches from outside, which is the harness."""

    @property
    def killed_after_ms(self) -> float:
        """A member that has not polled for so long is killed, and started again; 0: none is."""


@runtime_checkable
class Retried(Protocol):
    """A workload whose members park records in ``into`` until a retry program is done with them.

    Attributes:
        into: see ``Writes``.
        retried: the topic in which the program tells what it is done with, and members that keep the order of keys
            what waits; empty: nobody retries.
        retried_after_ms: how long the program takes for a record, from when it was written.
    """

    into: str
    retried: str
    retried_after_ms: float


@runtime_checkable
class Stores(Protocol):
    """A workload whose members write into a store outside of Kafka.

    Attributes:
        store: the PostgreSQL database that it is in; empty: a file in the run's history.
    """

    store: str


@runtime_checkable
class TellsEffects(Protocol):
    """A workload of whose members the effects are known by a function of the user's.

    Attributes:
        effects: ``module:function``; empty: there is none.
    """

    effects: str
