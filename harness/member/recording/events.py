"""The event log of one actor: one JSON object per line, written immediately, so that events survive SIGKILL.

A line has the keys ``_KEYS`` below. A callback or commit is written when it begins (``end_ns`` 0), and again when it
ends, with the same ``id``: the last line of an id is valid. Several writers may append to one file; each line is one
write.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

_FIELDS = ("begin_ns", "end_ns", "partitions", "generation", "member_id", "outcome", "error", "detail")
_KEYS = frozenset(("kind", "actor", "id", *_FIELDS))


class EventLog:
    """Writes the events of ``actor`` to ``path``; may be used by several threads.

    The fields of ``begin``, ``end`` and ``note`` are ``partitions`` ([topic, partition] or [topic, partition, offset]
    each), ``generation``, ``member_id``, ``outcome``, ``error``, ``detail`` (a mapping); ``begin_ns`` and ``end_ns`` if
    the time is not now; ``actor`` if the event is about another actor. Ids count from 1. Events about another actor
    have negative ids, so that these never collide with the ids in that actor's own log.

    Raises:
        TypeError: an unknown field, or a value that JSON cannot hold.
        OSError: the disk is full, or the folder cannot be written.
    """

    _fd = -1

    def __init__(self, path: Any, actor: str, now: Callable[[], int] = time.monotonic_ns) -> None:
        """Create the file, or append to it if it exists. ``now`` is the clock, in nanoseconds."""
        self.actor, self.folder, self.now = actor, Path(path).parent, now
        self._ids = itertools.count(1)
        self._open: Dict[int, Dict[str, Any]] = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)

    def begin(self, kind: str, **fields: Any) -> int:
        """Write that something began now; returns the id for ``end``."""
        event = self._event(kind, fields)
        self._write(event)
        self._open[event["id"]] = event
        return int(event["id"])

    def end(self, id_: int, **fields: Any) -> None:
        """Write that it ended now: the fields of its start, overridden by these.

        Raises:
            KeyError: no open event has this id.
        """
        event = self._open.pop(id_)
        self._write({**event, "end_ns": self.now(), **_checked(fields)})

    def note(self, kind: str, **fields: Any) -> int:
        """Write something that has no duration (begin = end = now); returns its id."""
        event = self._event(kind, fields)
        if "end_ns" not in fields:
            event["end_ns"] = event["begin_ns"]
        self._write(event)
        return int(event["id"])

    def close(self) -> None:
        """Close the file; without it no event is lost. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    __del__ = close  # for a process with one actor after the other

    def _event(self, kind: str, fields: Mapping[str, Any]) -> Dict[str, Any]:
        event: Dict[str, Any] = {
            "kind": str(kind),
            "actor": self.actor,
            "id": next(self._ids),
            "begin_ns": 0,
            "end_ns": 0,
            "detail": {},
        }
        event.update(dict.fromkeys(("generation", "member_id", "outcome", "error")), partitions=[])
        event.update(_checked(fields))
        if event["actor"] != self.actor:
            event["id"] = -event["id"]
        if "begin_ns" not in fields:
            event["begin_ns"] = self.now()
        return event

    def _write(self, event: Mapping[str, Any]) -> None:
        line = json.dumps(event, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        while line:  # usually one write; a second one only after a short write
            line = line[os.write(self._fd, line) :]


class Read(NamedTuple):
    """The result of ``read``: complete events, messages about invalid lines, and the byte at which to continue."""

    events: List[Dict[str, Any]]
    damage: List[str]
    next_at: int


def read(path: Any, start: int = 0) -> Read:
    """The events of a file from byte ``start`` on; a last line that is incomplete (or torn) is left for the next call.

    A line that is not an event becomes a message in ``damage``. A file that does not exist yet has no events.
    """
    try:
        with Path(path).open("rb") as file:
            file.seek(start)
            data = file.read()
    except FileNotFoundError:
        return Read([], [], start)
    events, damage, at = [], [], start
    for line in data.split(b"\n")[:-1]:
        try:
            events.append(_parse(line))
        except (ValueError, RecursionError) as error:
            damage.append("the line at byte %d is not an event: %s" % (at, error))
        at += len(line) + 1
    return Read(events, damage, at)


def _parse(line: bytes) -> Dict[str, Any]:
    event = json.loads(line)
    if not isinstance(event, dict):
        raise ValueError("it is not a JSON object")
    missing = sorted(_KEYS - set(event))
    if missing:
        raise ValueError("it has no key %s" % ", ".join(missing))
    return event


def _checked(fields: Mapping[str, Any]) -> Dict[str, Any]:
    strange = sorted(set(fields) - set(_FIELDS) - {"actor"})
    if strange:
        raise TypeError(
            "unknown field %s of an event; its fields: actor, %s" % (", ".join(strange), ", ".join(_FIELDS))
        )
    checked = dict(fields)
    if "partitions" in checked:
        checked["partitions"] = [_place(place) for place in checked["partitions"]]
    return checked


def _place(place: Sequence[Any]) -> List[Any]:
    topic, partition, offset = (*place, None) if len(place) == 2 else place
    return [str(topic), int(partition), _offset(offset)]


def _offset(offset: Optional[int]) -> Optional[int]:
    return None if offset is None else int(offset)
