"""The consumers inside one member process: usually one; a user's program may create several, also in forked processes.

A program may close consumers and create others, and processes that it forked may end, while it keeps running.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from fencepost.clock import now_ns
from fencepost.group.event_tail import EventTail
from fencepost.model import TopicPartition
from fencepost_member.names import parse

EventFields = Mapping[str, Any]


class ProcessConsumers:
    """The consumers of one incarnation. ``refresh`` brings it up to date.

    Attributes:
        strays: processes with consumers that have left the process group of the program.
    """

    def __init__(self, events: Path, actor: str, pid: int, several: bool) -> None:
        """``events``: the folder of event files; ``pid``: the started process; ``several``: whether it may have
        consumers besides ``actor``."""
        self._folder, self._actor, self._pid, self._several = events, actor, pid, several
        self._files = {actor: EventTail(events / f"{actor}.jsonl")}
        self._contained = several and _in_container(pid)
        self._processes: dict[str, psutil.Process] = {}  # of consumers outside the started process
        self._gone: dict[str, int] = {}  # consumers whose process has ended, and when that was seen
        self.strays: set[int] = set()

    def refresh(self) -> None:
        """Read new events, and check which consumers are still there."""
        for path in self._folder.glob("*.jsonl") if self._several else ():
            if path.stem not in self._files and parse(self._actor, path.stem):
                self._files[path.stem] = EventTail(path)
        for name, live in self._files.items():
            new = live.started is None
            live.refresh()
            if self._several and new and live.started is not None:
                self._meet(name, live.started["pid"])
        for name, process in self._processes.items():
            if name not in self._gone and _ended(process):
                self._gone[name] = now_ns()

    def _meet(self, name: str, reported: int) -> None:
        try:
            pid = _here(self._pid, reported) if self._contained else reported
            if pid == self._pid:
                return
            self._processes[name] = psutil.Process(pid)
            if not self._contained and os.getpgid(pid) != self._pid:  # faults hit all processes of a container
                self.strays.add(pid)
        except (psutil.NoSuchProcess, ProcessLookupError):
            self._gone[name] = now_ns()

    @property
    def names(self) -> tuple[str, ...]:
        """All that have started, in the order of their starts."""
        begun = (name for name, live in self._files.items() if live.started is not None)
        return tuple(sorted(begun, key=lambda name: self._files[name].started_ns))

    @property
    def present(self) -> Mapping[str, EventTail]:
        """The consumers that are there now."""
        left = self._left()
        return {name: self._files[name] for name in self.names if name not in left}

    def _left(self) -> dict[str, tuple[int, bool]]:
        """Consumers that are gone: since when, and whether they were closed. One that was not closed and was replaced
        by another was dropped by the program."""
        found: dict[str, tuple[int, bool]] = {}
        places: dict[str, str] = {}
        for name in self.names:
            live, one = self._files[name], parse(self._actor, name)
            before = places.get(one.place) if one else None
            if before is not None:
                found.setdefault(before, (live.started_ns, False))
            if one:
                places[one.place] = name
            if live.closed_ns:
                found[name] = live.closed_ns, True
            elif name in self._gone:
                found[name] = self._gone[name], False
        return found

    def ends(self, how: str, asked_ns: int) -> dict[str, tuple[int, str]]:
        """When and how each consumer ended, once the started process has; 0: together with it, as ``how`` says.

        If all were closed before, the last one counts as ended with the process: the process's end decides whether the
        program should have closed it. ``asked_ns``: when the harness requested the end, or killed it; 0: it did not.
        """
        for name in self._processes:
            self._gone.setdefault(name, now_ns())  # all others end with the started process
        left, names = self._left(), self.names
        if len(left) == len(names):
            left.pop(max((n for n in left if left[n][1]), key=lambda n: left[n], default=""), None)
        sooner = {
            name: (at_ns, "closed" if closed else "killed" if 0 < asked_ns <= at_ns else "crashed")
            for name, (at_ns, closed) in left.items()
        }
        return {name: sooner.get(name, (0, how)) for name in {self._actor: None, **dict.fromkeys(names)}}

    @property
    def started(self) -> EventFields | None:
        """The detail of the first consumer's started event; None before it."""
        return next((self._files[name].started for name in self.names), None)

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that they own now."""
        return frozenset[TopicPartition]().union(*(live.owned for live in self.present.values()))

    def describe(self) -> str:
        """The partitions of each present consumer, and the errors of all; for messages."""
        owned = {name: live.owned for name, live in self.present.items()} or {self._actor: frozenset[TopicPartition]()}
        shares = "; ".join(
            f"{name} owns {', '.join(map(str, sorted(own))) or 'nothing'}" for name, own in owned.items()
        )
        errors = ", ".join(f"{name} ({count} times)" for name, count in self.errors.most_common())
        whose = "its client" if len(owned) == 1 else "their clients"
        return shares + (f", and {whose} reported {errors}" if errors else "")

    @property
    def member_id(self) -> str:
        """Member id of the first present consumer; empty: not reported yet."""
        return next((live.member_id for live in self.present.values()), "")

    @property
    def ids(self) -> frozenset[str]:
        """All member ids that the coordinator gave them."""
        return frozenset[str]().union(*(live.ids for live in self._files.values()))

    def polled_by_fork(self, name: str) -> bool:
        """Whether a process that was forked from the consumer's own polls it."""
        return any(self._folder.glob(f"{name}-forked-*.jsonl"))

    @property
    def errors(self) -> Counter[str]:
        """Number of errors that their clients reported, by Kafka's name."""
        return sum((live.errors for live in self._files.values()), Counter[str]())

    @property
    def fatal(self) -> str:
        """The name of an error that ended one of them permanently; empty: none."""
        return next((live.fatal for live in self._files.values() if live.fatal), "")

    @property
    def lost_ns(self) -> int:
        """When one of them last received partitions as lost; 0: never."""
        return max(live.lost_ns for live in self._files.values())

    @property
    def open(self) -> Mapping[str, int]:
        """Kinds of events that have begun and not ended in any of them, and when the latest began, ns."""
        return _latest(live.open for live in self.present.values())

    @property
    def ended(self) -> Mapping[str, int]:
        """Kinds of events that have ended in any of them, and when the last of them began, ns."""
        return _latest(live.ended for live in self._files.values())

    def reported(self, kind: str) -> tuple[EventFields, ...]:
        """All events of a kind, in the order of their beginnings; see ``EventTail.reported``."""
        found = (event for live in self._files.values() for event in live.reported[kind].values())
        return tuple(sorted(found, key=lambda event: int(event["begin_ns"])))


def _latest(times: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The latest time of each kind."""
    found: dict[str, int] = {}
    for one in times:
        found.update((kind, max(at_ns, found.get(kind, 0))) for kind, at_ns in one.items())
    return found


def _in_container(pid: int) -> bool:
    """Whether the pid inside the process's own namespace differs from its pid on this machine."""
    try:
        return _numbers(pid) != [pid]
    except OSError:
        return False


def _here(first: int, reported: int) -> int:
    """The pid on this machine of a container's first process, or of a child of it, by its pid in the container. Raises
    psutil.NoSuchProcess."""
    parent = psutil.Process(first)
    for process in (parent, *parent.children(recursive=True)):
        with suppress(OSError):  # it has ended meanwhile
            if _numbers(process.pid)[-1] == reported:
                return int(process.pid)
    raise psutil.NoSuchProcess(reported)


def _numbers(pid: int) -> list[int]:
    """Its pid in each nested namespace, beginning with this one."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return [int(number) for number in status.partition("NSpid:")[2].partition("\n")[0].split()]


def _ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
