"""The contracts of processes, of what starts them (this machine or a container), and of the nodes that faults hit."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fencepost.model.clients import Client


class Process(Protocol):
    """One process of a member, a broker or a tool. ``psutil.Popen`` satisfies it."""

    @property
    def pid(self) -> int:
        """Its process id on this machine."""

    def poll(self) -> int | None:
        """Its exit code (negative: the number of the signal that killed it); None while it runs."""

    def send_signal(self, sig: int) -> None:
        """Send it a signal. SIGSTOP and SIGCONT may be replaced by other means that suspend all of it."""

    def status(self) -> str:
        """The kernel's word for its state."""


class Spawn(Protocol):
    """Starts processes in one place; stdout and stderr of each are appended to its log."""

    def __call__(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Process:
        """Start a process and return at once; ``env`` is added to the environment that processes have there."""


class MemberSpawn(Protocol):
    """Starts the process of a member, which must see the owner's directory and be able to write below ``history``."""

    def __call__(
        self, argv: Sequence[str | Path], *, log: Path, env: Mapping[str, str], history: Path, image: str
    ) -> Process:
        """As ``Spawn``. ``image``: the user's image; empty: ours."""


@dataclass(frozen=True)
class Environment:
    """The environment of members: a release of a client library, and a Python.

    Attributes:
        client: without a version, the one that is installed with Fencepost.
        python: its version (``3.9``, ``3.9.18``); empty: the harness's own Python.
        image: the user's container image, which contains everything; empty: none.
    """

    client: Client = field(default_factory=lambda: Client("confluent-kafka"))
    python: str = ""
    image: str = ""

    @property
    def own(self) -> bool:
        """Whether it differs from the harness's environment, and must be created."""
        return bool(self.client.version or self.python)


@dataclass(frozen=True)
class Interpreter:
    """The Python that a member runs on, by default ours.

    Attributes:
        import_path: where it finds its client library when that is not installed in it.
        spawn: starts its processes where they run; None: on this machine.
        command: a program that is the member itself, started in the current directory; empty: ours.
        lines: the program is not instrumented: it reports its actions, see ``fencepost_member.json_lines``.
        silent: it reports nothing either.
        image: the image that contains it; empty: the place where ``spawn`` starts our members.
        groups: supplementary groups of its processes on this machine.
        env: environment variables of its processes, in addition to ours.
    """

    python: str = sys.executable
    import_path: tuple[Path, ...] = ()
    spawn: MemberSpawn | None = None
    command: tuple[str, ...] = ()
    lines: bool = False
    silent: bool = False
    image: str = ""
    groups: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


class Node(Protocol):
    """A process that faults can hit: a member or a broker. Faults know no other way to touch processes."""

    @property
    def name(self) -> str:
        """``member-2`` or ``broker-1``; stays the same over restarts."""

    @property
    def pid(self) -> int | None:
        """Process id of the present incarnation; None when there is none. A new incarnation has a new pid."""

    def start(self) -> None:
        """Start a process and return once it serves (broker) or its loop runs (member). No-op when it runs."""

    def signal(self, signal: int) -> None:
        """Send a signal to the present process (SIGTERM asks for a clean end); no-op when there is none. A signal that
        stops, continues or kills a program of the user's also reaches all processes that it forked."""

    def wait_ended(self, within_s: float) -> int:
        """Wait for the present process to end, reap it and return its exit code (negative: the signal's number)."""


@runtime_checkable
class ExternalNode(Protocol):
    """A broker that others run: its process cannot be seen, ended or stopped from here."""

    @property
    def endpoint(self) -> tuple[str, int]:
        """Where it listens for clients."""


class MemberNode(Node, Protocol):
    """A member from the view of faults."""

    @property
    def slot(self) -> int:
        """The slot that it uses."""

    def launch(self, **changes: Any) -> None:
        """Start a process with the usual configuration and ``changes``, without waiting for it. No-op when it runs."""

    def adopt(self, **changes: Any) -> None:
        """Start a process as ``launch`` does; later incarnations keep the changes."""

    def reconfigure(self, **changes: Any) -> None:
        """Give the running process its first configuration with ``changes``. No-op unless its loop runs."""

    def reported(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """The events of a kind (``history.EventKind``) of its present or last incarnation so far, in order."""


@runtime_checkable
class Supervised(Protocol):
    """A workload whose members are watched from outside by a supervisor, which is the harness."""

    @property
    def killed_after_ms(self) -> float:
        """A member that has not polled for this long, in ms, is killed and started again; 0: never."""


@runtime_checkable
class HasRetryService(Protocol):
    """A workload whose members park records in ``into`` until a retry program has completed them.

    Attributes:
        into: see ``WritesOutput``.
        retried: the topic in which the program records what it has completed, and members that keep the order of keys
            record what waits; empty: there are no retries.
        retried_after_ms: how long after a record was written the program completes it.
    """

    into: str
    retried: str
    retried_after_ms: float


@runtime_checkable
class HasStore(Protocol):
    """A workload whose members write into a store outside of Kafka.

    Attributes:
        store: the PostgreSQL database that it is in; empty: a file in the run's history.
    """

    store: str


@runtime_checkable
class ReportsEffects(Protocol):
    """A workload whose effects are listed by a function of the user's.

    Attributes:
        effects: ``module:function``; empty: there is none.
        effects_in_order: whether it lists them in the order in which they were written.
    """

    effects: str
    effects_in_order: bool
