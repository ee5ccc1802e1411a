"""What the consumers of one life tell: as a rule there is one, of a user's program as many as it makes, and its forks.

A program closes consumers and makes others, and processes that it forked end, while it goes on.
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
from fencepost.group.event_tail import LiveEvents
from fencepost.model import TopicPartition
from fencepost_member.names import parse

Told = Mapping[str, Any]


class Inside:
    """The consumers of one life. ``refresh`` brings it up to date.

    Attributes:
        strays: processes with consumers that have left the group of the program's processes.
    """

    def __init__(self, events: Path, actor: str, pid: int, several: bool) -> None:
        """``events`` is the folder of event files, ``pid`` the process that was started; ``several``: it may have more
        consumers than the one that is called ``actor``."""
        self._folder, self._actor, self._pid, self._several = events, actor, pid, several
        self._files = {actor: LiveEvents(events / f"{actor}.jsonl")}
        self._apart = several and _in_container(pid)
        self._processes: dict[str, psutil.Process] = {}  # of consumers that are not in the process that was started
        self._gone: dict[str, int] = {}  # whose process has ended, and when that was seen
        self.strays: set[int] = set()

    def refresh(self) -> None:
        """Read what was written since the last time, and look who is still there."""
        for path in self._folder.glob("*.jsonl") if self._several else ():
            if path.stem not in self._files and parse(self._actor, path.stem):
                self._files[path.stem] = LiveEvents(path)
        for name, live in self._files.items():
            new = live.started is None
            live.refresh()
            if self._several and new and live.started is not None:
                self._meet(name, live.started["pid"])
        for name, process in self._processes.items():
            if name not in self._gone and _ended(process):
                self._gone[name] = now_ns()

    def _meet(self, name: str, told: int) -> None:
        try:
            pid = _here(self._pid, told) if self._apart else told
            if pid == self._pid:
                return
            self._processes[name] = psutil.Process(pid)
            if not self._apart and os.getpgid(pid) != self._pid:  # what hits a container hits all that is in it
                self.strays.add(pid)
        except (psutil.NoSuchProcess, ProcessLookupError):
            self._gone[name] = now_ns()

    @property
    def names(self) -> tuple[str, ...]:
        """All that have begun, in the order in which they did."""
        begun = (name for name, live in self._files.items() if live.started is not None)
        return tuple(sorted(begun, key=lambda name: self._files[name].started_ns))

    @property
    def present(self) -> Mapping[str, LiveEvents]:
        """Those that are there now."""
        left = self._left()
        return {name: self._files[name] for name in self.names if name not in left}

    def _left(self) -> dict[str, tuple[int, bool]]:
        """Those that are not: since when, and whether they were closed. Who was not, and another one has its place by
        now, was dropped by the program."""
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
        """When and how each of them ended, now that the process that was started has; 0: with it, as ``how`` says.

        The last one that was closed ends with it where no other is left: whether the program should have closed it
        is known by how that ended. ``asked_ns``: when the harness asked the life to end, or killed it; 0: it did not.
        """
        for name in self._processes:
            self._gone.setdefault(name, now_ns())  # all others end with it
        left, names = self._left(), self.names
        if len(left) == len(names):
            left.pop(max((n for n in left if left[n][1]), key=lambda n: left[n], default=""), None)
        sooner = {
            name: (at_ns, "closed" if closed else "killed" if 0 < asked_ns <= at_ns else "crashed")
            for name, (at_ns, closed) in left.items()
        }
        return {name: sooner.get(name, (0, how)) for name in {self._actor: None, **dict.fromkeys(names)}}

    @property
    def started(self) -> Told | None:
        """The detail of the first one's started event; None before it."""
        return next((self._files[name].started for name in self.names), None)

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that they own now."""
        return frozenset[TopicPartition]().union(*(live.owned for live in self.present.values()))

    def describe(self) -> str:
        """What each of those that are there owns, and which errors all have told; for messages."""
        owned = {name: live.owned for name, live in self.present.items()} or {self._actor: frozenset[TopicPartition]()}
        shares = "; ".join(
            f"{name} owns {', '.join(map(str, sorted(own))) or 'nothing'}" for name, own in owned.items()
        )
        errors = ", ".join(f"{name} ({count} times)" for name, count in self.errors.most_common())
        whose = "its client" if len(owned) == 1 else "their clients"
        return shares + (f", and {whose} reported {errors}" if errors else "")

    @property
    def member_id(self) -> str:
        """What the coordinator calls the first of those that are there; empty: it has not told yet."""
        return next((live.member_id for live in self.present.values()), "")

    @property
    def ids(self) -> frozenset[str]:
        """All member ids that the coordinator gave them."""
        return frozenset[str]().union(*(live.ids for live in self._files.values()))

    def polled_by_fork(self, name: str) -> bool:
        """Whether a process that was forked from that of the consumer of this name polls it."""
        return any(self._folder.glob(f"{name}-forked-*.jsonl"))

    @property
    def errors(self) -> Counter[str]:
        """How many errors their clients reported, by Kafka's name."""
        return sum((live.errors for live in self._files.values()), Counter[str]())

    @property
    def fatal(self) -> str:
        """The name of the error that ended one of them for good; empty: none."""
        return next((live.fatal for live in self._files.values() if live.fatal), "")

    @property
    def lost_ns(self) -> int:
        """When one of them was last told that partitions are lost; 0: never."""
        return max(live.lost_ns for live in self._files.values())

    @property
    def open(self) -> Mapping[str, int]:
        """Kinds of events that have begun and not ended with any of them, and since when at the latest, ns."""
        return _latest(live.open for live in self.present.values())

    @property
    def ended(self) -> Mapping[str, int]:
        """Kinds of events that have ended with any of them, and when the last of them began, ns."""
        return _latest(live.ended for live in self._files.values())

    def told(self, kind: str) -> tuple[Told, ...]:
        """All events of a kind, in the order of their begins; see ``LiveEvents.told``."""
        found = (event for live in self._files.values() for event in live.told[kind].values())
        return tuple(sorted(found, key=lambda event: int(event["begin_ns"])))


def _latest(times: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Of each kind the latest time."""
    found: dict[str, int] = {}
    for one in times:
        found.update((kind, max(at_ns, found.get(kind, 0))) for kind, at_ns in one.items())
    return found


def _in_container(pid: int) -> bool:
    """Whether a process that is there calls itself by another number than this machine does."""
    try:
        return _numbers(pid) != [pid]
    except OSError:
        return False


def _here(first: int, told: int) -> int:
    """What this machine calls the process that a container's first one, or a child of it, calls by a number. Raises
    psutil.NoSuchProcess."""
    parent = psutil.Process(first)
    for process in (parent, *parent.children(recursive=True)):
        with suppress(OSError):  # it has ended meanwhile
            if _numbers(process.pid)[-1] == told:
                return int(process.pid)
    raise psutil.NoSuchProcess(told)


def _numbers(pid: int) -> list[int]:
    """What it is called in each namespace of process ids, from this one on."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return [int(number) for number in status.partition("NSpid:")[2].partition("\n")[0].split()]


def _ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
