"""The handle on one member over all its incarnations, for faults and the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.errors import MemberError
from fencepost.group.coordinator_view import connected
from fencepost.group.incarnation import Incarnation, RunPaths
from fencepost.interfaces.process import Interpreter
from fencepost.model import TopicPartition


class MemberHandle:
    """One member over all its incarnations. Satisfies ``interfaces.process.Node``.

    Attributes:
        index, slot: the member's number, and its slot.
        life: the present or last incarnation; None before the first.
    """

    def __init__(
        self, home: RunPaths, index: int, slot: int, config: Mapping[str, Any], interpreter: Interpreter | None = None
    ) -> None:
        """``config``: the input of ``fencepost_member`` without actor, member, slot and run. Nothing is started."""
        self.index, self.slot = index, slot
        self.life: Incarnation | None = None
        self._home, self._lives = home, 0
        self._config = {**config, "member": index, "slot": slot}
        self._interpreter = interpreter or Interpreter()

    @property
    def name(self) -> str:
        """``member-2``, the same for all incarnations."""
        return f"member-{self.index}"

    @property
    def actor(self) -> str:
        """``member-2.1``: the present or last incarnation; empty before the first."""
        return self.life.actor if self.life else ""

    @property
    def pid(self) -> int | None:
        """Process id of the present incarnation; None when there is none."""
        return self.life.pid if self.life else None

    @property
    def polled_ns(self) -> int:
        """When the present incarnation last called poll; 0: never, or there is none."""
        return self.life.polled_ns if self.life and self.pid is not None else 0

    @property
    def connected(self) -> bool:
        """Whether its process itself has a connection to brokers, or to its proxies; False once it has ended.

        Containers are not checked: faults hit all processes in one."""
        if self.pid is None or self._interpreter.image:
            return self.pid is not None
        return connected(self.pid, self._config["bootstrap"])

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions of the present incarnation at the last refresh; empty once it has ended."""
        return self.life.live.owned if self.life and self.pid is not None else frozenset()

    @property
    def consumers(self) -> tuple[str, ...]:
        """The consumers in the present incarnation at the last refresh."""
        return tuple(self.life.live.present) if self.life and self.pid is not None else ()

    @property
    def member_id(self) -> str:
        """Member id of the present or last incarnation, as it reported last; empty: not reported yet."""
        return self.life.live.member_id if self.life else ""

    def launch(self, **changes: Any) -> None:
        """Start a process with the usual configuration and ``changes``, without waiting for it. No-op when it runs."""
        if self.pid is None:
            self._lives += 1
            actor = f"{self.name}.{self._lives}"
            config = {**self._config, **changes}
            self.life = Incarnation(self._home, actor, "fencepost_member", config, self._interpreter)

    def adopt(self, **changes: Any) -> None:
        """Start a process as ``launch`` does; later incarnations keep the changes."""
        self._config = {**self._config, **changes}
        self.launch()

    def reconfigure(self, **changes: Any) -> None:
        """Give the running process its first configuration with ``changes``. No-op unless its loop runs."""
        if self.life and self.pid is not None:
            self.life.reconfigure(**changes)

    def start(self) -> None:
        """Start a process and return once its loop runs. No-op when it runs."""
        self.launch()
        self.wait_started()

    def wait_started(self) -> None:
        """Wait until the loop of the present incarnation runs. Raises MemberError when it ended instead."""
        assert self.life is not None
        self.life.wait_started()

    def signal(self, signal: int) -> None:
        """Send a signal to the present process; no-op when there is none."""
        if self.life:
            self.life.signal(signal)

    def reported(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """Events of this kind from the present or last incarnation so far, in order; in the form of ``EventLog``."""
        if self.life is None:
            return ()
        self.life.live.refresh()
        return self.life.live.reported(kind)

    def wait_ended(self, within_s: float) -> int:
        """Wait for the present process to end and return its exit code. Raises MemberError if none was ever started."""
        if self.life is None:
            raise MemberError(f"{self.name} was never started, so it cannot end")
        return self.life.wait_ended(within_s)
