"""The group under test, from the harness's side: handles for its members and producers, and what they tell live."""

from __future__ import annotations

import signal as signals
from collections.abc import Mapping, Sequence
from typing import Any

from fencepost import programs, scenario
from fencepost.errors import MemberError
from fencepost.interfaces import Cluster, Workload
from fencepost.live import RecordCounts, count_records
from fencepost.lives import KILL_S, Home, Incarnation, stop
from fencepost.model import TopicPartition
from fencepost.process_interfaces import Interpreter

__all__ = ["Group", "Home", "Incarnation", "Interpreter", "MemberProcess", "RecordCounts", "make", "stop"]


class MemberProcess:
    """One member over all its lives. Satisfies ``interfaces.Node``.

    Attributes:
        index, slot: which member, and the slot it lives in.
        life: the present or last life; None before the first.
    """

    def __init__(
        self, home: Home, index: int, slot: int, config: Mapping[str, Any], interpreter: Interpreter | None = None
    ) -> None:
        """``config``: what ``fencepost_member`` reads, but for actor, member, slot and run. Nothing is started."""
        self.index, self.slot = index, slot
        self.life: Incarnation | None = None
        self._home, self._lives = home, 0
        self._config = {**config, "member": index, "slot": slot}
        self._interpreter = interpreter or Interpreter()

    @property
    def name(self) -> str:
        """``member-2``, over all lives."""
        return f"member-{self.index}"

    @property
    def actor(self) -> str:
        """``member-2.1``: the present or last life; empty before the first."""
        return self.life.actor if self.life else ""

    @property
    def pid(self) -> int | None:
        """Process id of the present life; None when there is none."""
        return self.life.pid if self.life else None

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """What the present life owned at the last refresh; nothing once it has ended."""
        return self.life.live.owned if self.life and self.pid is not None else frozenset()

    @property
    def member_id(self) -> str:
        """What the coordinator calls the present or last life, as that told last; empty: it has not told yet."""
        return self.life.live.member_id if self.life else ""

    def launch(self, **changes: Any) -> None:
        """Begin a new life, configured as ever but for ``changes``, without waiting for it. No-op when alive."""
        if self.pid is None:
            self._lives += 1
            actor = f"{self.name}.{self._lives}"
            config = {**self._config, **changes}
            self.life = Incarnation(self._home, actor, "fencepost_member", config, self._interpreter)

    def reconfigure(self, **changes: Any) -> None:
        """Have the present life go on configured as it began but for ``changes``. No-op unless its loop runs."""
        if self.life and self.pid is not None:
            self.life.reconfigure(**changes)

    def start(self) -> None:
        """Begin a new life and return once its loop runs. No-op when alive."""
        self.launch()
        self.wait_started()

    def wait_started(self) -> None:
        """Wait until the loop of the present life runs. Raises MemberError when it ended instead."""
        assert self.life is not None
        self.life.wait_started()

    def signal(self, signal: int) -> None:
        """Send a signal to the present life; nothing happens when there is none."""
        if self.life:
            self.life.signal(signal)

    def told(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """What the present or last life has told of this kind until now, in order; an event as ``EventLog`` has it."""
        if self.life is None:
            return ()
        self.life.live.refresh()
        return tuple(self.life.live.told[kind].values())

    def wait_ended(self, within_s: float) -> int:
        """Wait for the present life to end and return its exit code. Raises MemberError before the first life."""
        if self.life is None:
            raise MemberError(f"{self.name} was never started, so it cannot end")
        return self.life.wait_ended(within_s)


class Group:
    """All members and producers of a run.

    Attributes:
        members: by index; those that were never started included, the spare ones last.
        producers: the lives of the producers, each has one; empty before ``start_producers``.
    """

    def __init__(
        self, home: Home, members: Sequence[MemberProcess], producers: Sequence[Mapping[str, Any]], spare: int = 0
    ) -> None:
        """``producers``: a configuration for each; ``spare``: how many of the members wait. Nothing is started."""
        self._home, self._configs, self._spare = home, producers, spare
        self.members = tuple(members)
        self.producers: tuple[Incarnation, ...] = ()

    def start(self) -> None:
        """Start members, but for spare ones, and producers at once; returns when all run.

        Raises:
            MemberError: one does not.
        """
        first = self.members[: len(self.members) - self._spare]
        for member in first:
            member.launch()
        self.start_producers()
        for member in first:
            member.wait_started()

    def start_producers(self) -> None:
        """Start the producers; returns when all run."""
        module = "fencepost_member.producer"
        names = [f"producer-{config['writer']}" for config in self._configs]
        self.producers = tuple(
            Incarnation(self._home, name, module, config, programs.importing(config, Interpreter()))
            for name, config in zip(names, self._configs, strict=True)
        )
        for producer in self.producers:
            producer.wait_started()

    def refresh(self) -> None:
        """Read on what members and producers tell, and reap those that have ended."""
        for life in self._lives():
            life.live.refresh()
            _ = life.exit_code

    def must_live(self) -> None:
        """Make sure that everybody who was started lives, as of the last refresh.

        Raises:
            MemberError: somebody ended; says who, how, and the last lines of the log.
        """
        for life in self._lives():
            if life.exit_code is not None:
                gave_up = f", because of {life.live.fatal}" if life.live.fatal else ""
                raise MemberError(f"{life.actor} ended with exit code {life.exit_code}{gave_up}: {life.log_end()}")

    def describe(self) -> str:
        """What every member owns and which errors its client told, as of the last refresh; for messages."""
        return "; ".join(_describe(member.life) for member in self.members if member.life)

    def progress(self) -> RecordCounts:
        """Records so far."""
        return count_records(self._home.history / "segments")

    def stop_producers(self, within_s: float) -> list[str]:
        """End the producers cleanly; see ``stop``."""
        return stop(self.producers, within_s)

    def stop_members(self, within_s: float) -> list[str]:
        """End the members cleanly; see ``stop``."""
        return stop([member.life for member in self.members if member.life], within_s)

    def kill(self) -> None:
        """Kill whatever is left, paused or not, and reap it. May be called twice."""
        for life in self._lives():
            life.signal(signals.SIGKILL)
        for life in self._lives():
            life.wait_ended(KILL_S)
        self.refresh()

    def _lives(self) -> list[Incarnation]:
        return [*self.producers, *(member.life for member in self.members if member.life)]


def _describe(life: Incarnation) -> str:
    owned = ", ".join(map(str, sorted(life.live.owned))) or "nothing"
    errors = ", ".join(f"{name} ({count} times)" for name, count in life.live.errors.most_common())
    return f"{life.actor} owns {owned}" + (f", and its client reported {errors}" if errors else "")


def make(
    home: Home,
    cluster: Cluster,
    spec: scenario.Group,
    workload: Workload,
    *,
    name: str,
    topics: Mapping[str, Mapping[int, int]],
    seed: int,
    prefix: str = "",
) -> Group:
    """The group that a scenario asks for: member ``i`` in slot ``i``, producers past the proxies. Starts nothing.

    Args:
        name: ``group.id``.
        topics: topic -> partition -> number ``tp``.
        prefix: what their names begin with here, and not in the scenario.
    """
    shared = {
        "group": name,
        "topics": topics,
        "protocol": spec.protocol,
        "client_config": {**cluster.access, **spec.client_config()},
        "prefix": prefix,
    }
    members = []
    for index, environment in enumerate(spec.environments):
        instance = f"{name}-member-{index}" if spec.static else None
        loop = workload.member_config(index)
        if loop.get("into"):
            loop["into"] = prefix + loop["into"]
        own = {
            "bootstrap": cluster.bootstrap(index),
            "client": environment.client.name,
            "instance_id": instance,
            "loop": loop,
        }
        found = programs.interpreter(cluster.interpreter(index), spec.command, environment)
        interpreter = programs.importing(loop, found)
        members.append(MemberProcess(home, index, index, {**shared, **own}, interpreter))
    options = dict(workload.producer_config())
    count = options.pop("producers", 1)
    common = {
        **options,
        "topics": topics,
        "bootstrap": cluster.bootstrap(),
        "seed": seed,
        "client_config": dict(cluster.access),
        "text": any(client.library.lines for client in spec.clients),
    }
    return Group(home, members, [{**common, "writer": writer} for writer in range(count)], spec.spare)
