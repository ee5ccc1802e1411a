"""The group under test, from the harness's side: handles for its members and producers, and their live events."""

from __future__ import annotations

import signal as signals
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.clock import NS, now_ns
from fencepost.errors import MemberError
from fencepost.group import programs
from fencepost.group.coordinator_view import CoordinatorView
from fencepost.group.event_tail import RecordCounts, count_records
from fencepost.group.incarnation import KILL_S, Incarnation, RunPaths, stop
from fencepost.group.member_handle import MemberHandle
from fencepost.interfaces import Cluster, Workload
from fencepost.interfaces.process import Interpreter, Supervised
from fencepost.model.run_names import RunNames
from fencepost.scenario import scenario
from fencepost_member.producing.contents import are_samples

__all__ = ["Incarnation", "Interpreter", "MemberHandle", "RecordCounts", "RunPaths", "RunningGroup", "make", "stop"]


class RunningGroup:
    """All members and producers of a run.

    Attributes:
        members: by index, including members that were never started; spare ones are last.
        producers: the incarnations of the producers, one for each; empty before ``start_producers``.
        outside: the coordinator's view of members that report nothing; None: they report themselves.
    """

    def __init__(
        self,
        home: RunPaths,
        members: Sequence[MemberHandle],
        producers: Sequence[Mapping[str, Any]],
        spare: int = 0,
        outside: CoordinatorView | None = None,
        killed_after_ms: float = 0,
    ) -> None:
        """``producers``: a configuration for each; ``spare``: the number of members that are not started;
        ``killed_after_ms``: see ``supervise``. Nothing is started."""
        self._home, self._configs, self._spare, self.outside = home, producers, spare, outside
        self._overdue_ns = int(killed_after_ms * NS / 1000)
        self.members = tuple(members)
        self.producers: tuple[Incarnation, ...] = ()

    def start(self) -> None:
        """Start members (except spare ones) and producers at once; returns when all run.

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
        module = "fencepost_member.producing.producer"
        names = [f"producer-{config['writer']}" for config in self._configs]
        self.producers = tuple(
            Incarnation(self._home, name, module, config, programs.importing(config, Interpreter()))
            for name, config in zip(names, self._configs, strict=True)
        )
        for producer in self.producers:
            producer.wait_started()

    def refresh(self) -> None:
        """Read new events of members and producers, and reap the ones that have ended."""
        for life in self._lives():
            life.live.refresh()
            _ = life.exit_code

    def supervise(self) -> None:
        """If there is a supervisor, kill each member that has not polled for too long, and start it again. Its ended
        event counts as caused, and has the time of its last poll."""
        for member in self.members if self._overdue_ns else ():
            if 0 < member.polled_ns < now_ns() - self._overdue_ns:
                member.signal(signals.SIGKILL)
                member.wait_ended(KILL_S)
                member.launch()

    def must_live(self) -> None:
        """Check that every process that was started runs, as of the last refresh.

        Raises:
            MemberError: one ended; names it, its exit code, and the last lines of its log.
        """
        for life in self._lives():
            if life.exit_code is not None:
                gave_up = f", because of {life.live.fatal}" if life.live.fatal else ""
                raise MemberError(f"{life.actor} ended with exit code {life.exit_code}{gave_up}: {life.log_end()}")

    def must_consume(self) -> None:
        """Check that members that report nothing consume in their own processes, and not in children of them.

        Raises:
            MemberError: faults would hit another process than the one that consumes.
        """
        for member in self.members if self.outside else ():
            if member.pid is not None and not member.connected:
                raise MemberError(
                    f"{member.actor}: process {member.pid} has no connection to any broker, so a child of it consumes, "
                    "and faults would hit only the parent: make the consuming program itself the command (in a "
                    "shell, exec it)"
                )

    def describe(self) -> str:
        """Every consumer's partitions, and the errors of its client, as of the last refresh; for messages."""
        return str(self.outside or "; ".join(member.life.live.describe() for member in self.members if member.life))

    @property
    def consumers(self) -> int:
        """Number of members that a coordinator would see, as of the last refresh: a program may have several."""
        lives = [member.life for member in self.members[: len(self.members) - self._spare] if member.life]
        return sum(1 if self.outside else max(1, len(life.live.present)) for life in lives)

    def shares(self) -> list[int]:
        """Number of partitions of each consumer that owns any: by its callbacks, or for silent members by the
        coordinator, which is asked now.

        Raises:
            FencepostError: the coordinator does not answer.
        """
        if self.outside:
            self.outside.refresh()
        alive = [member.life for member in self.members if member.life and member.pid is not None]
        owned = [len(live.owned) for life in alive for live in life.live.present.values() if live.owned]
        return self.outside.shares if self.outside else owned

    @property
    def polls_in_vain(self) -> bool:
        """Whether records wait, and every consumer polls and has never received one, as of the last refresh; see
        ``Incarnation``. A consumer that has not polled yet may be about to begin."""
        counts, alive = self.progress(), [member.life for member in self.members if member.life and member.pid]
        waiting = counts.acknowledged > 0 and counts.delivered == 0
        return waiting and bool(alive) and all(life.polls_in_vain for life in alive)

    @property
    def polled_by_forks(self) -> bool:
        """Whether consumers are polled in processes that were forked from theirs; see ``ProcessConsumers``."""
        alive = [member.life.live for member in self.members if member.life and member.pid]
        return any(live.polled_by_fork(name) for live in alive for name in live.present)

    def progress(self) -> RecordCounts:
        """Records so far; for members that report nothing, only the records committed when the coordinator was last
        asked."""
        counts, done = count_records(self._home.history / "segments"), self.outside.committed if self.outside else 0
        return counts._replace(delivered=done, processed=done) if self.outside else counts

    def stop_producers(self, within_s: float) -> list[str]:
        """End the producers cleanly; see ``stop``."""
        return stop(self.producers, within_s)

    def stop_members(self, within_s: float) -> list[str]:
        """End the members cleanly; see ``stop``."""
        return stop([member.life for member in self.members if member.life], within_s)

    def kill(self) -> None:
        """Kill all remaining processes, paused or not, and reap them. May be called twice."""
        for life in self._lives():
            life.signal(signals.SIGKILL)
        for life in self._lives():
            life.wait_ended(KILL_S)
        self.refresh()

    def _lives(self) -> list[Incarnation]:
        return [*self.producers, *(member.life for member in self.members if member.life)]


def make(
    home: RunPaths,
    cluster: Cluster,
    spec: scenario.Group,
    workload: Workload,
    *,
    names: RunNames,
    topics: Mapping[str, Mapping[int, int]],
    seed: int,
) -> RunningGroup:
    """The group that a scenario describes: member ``i`` in slot ``i``; producers do not use proxies. Starts nothing.

    Args:
        topics: the cluster's name of a topic -> partition -> number ``tp``.
    """
    shared = {
        "group": names.group,
        "topics": topics,
        "protocol": spec.protocol,
        "prefix": names.prefix,
    }
    members = []
    for index, environment in enumerate(spec.environments):
        instance = f"{names.group}-member-{index}" if spec.statics[index] else None
        loop = workload.member_config(index)
        loop.update({option: names.in_cluster(loop[option]) for option in ("into", "redirect") if loop.get(option)})
        own = {
            "bootstrap": cluster.bootstrap(index),
            "client": environment.client.name,
            "client_config": {**cluster.access, **spec.client_configs[index]},
            "instance_id": instance,
            "loop": loop,
        }
        found = programs.interpreter(cluster.interpreter(index), spec.commands[index], environment)
        interpreter = replace(programs.importing(loop, found), env=spec.variables[index])
        members.append(MemberHandle(home, index, index, {**shared, **own}, interpreter))
    options = dict(workload.producer_config())
    count = options.pop("producers", 1)
    if are_samples(str(options.get("payload", ""))):  # producers work in another folder
        options["payload"] = str(Path(options["payload"]).absolute())
    common = {
        **options,
        "topics": topics,
        "bootstrap": cluster.bootstrap(),
        "seed": seed,
        "client_config": dict(cluster.access),
        "text": not spec.imports,
    }
    outside = CoordinatorView(cluster.admin, names.group) if spec.silent else None
    killed_after_ms = workload.killed_after_ms if isinstance(workload, Supervised) else 0
    writers = [{**common, "writer": writer} for writer in range(count)]
    return RunningGroup(home, members, writers, spec.spare, outside, killed_after_ms)
