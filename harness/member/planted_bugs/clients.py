"""Planted bugs in clients: a layer between a member and its client library returns wrong records.

``lost-record``
    A few times drops a record that has a record of its partition before it and after it in a poll.
``torn-value``
    Every delivery of a record has a different sequence number, which no producer wrote.
``late-record``
    Returns the last record of a partition again, ``LATE_S`` after the partition was revoked.
``paused-for-ever``
    Once stops fetching one partition, and never resumes it.
``slow-start``
    Fetches an assigned partition only after ``LOADS_S``, like a program that must load much state first.
``reads-uncommitted``
    Reads uncommitted records, although its program asked for ``read_committed`` and the client reports that.

``requests`` has the clients that send wrong requests to the cluster, ``callbacks`` those that report wrong assignments
to their program.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Set

from fencepost_member import adapters
from fencepost_member.adapters import ClientListener, Headers, Record, Tp
from fencepost_member.adapters.settings import ISOLATION, READ_COMMITTED
from fencepost_member.config import MemberConfig
from fencepost_member.payload import carrier, pack, unpack
from fencepost_member.planted_bugs.bug_trigger import ALWAYS, EVERY_S, TIMES, BugTrigger

LATE_S = 2.0
LOADS_S = 12.0


class FaultyClient:
    """Passes everything on unchanged. It is the ``Adapter`` of the member and the ``ClientListener`` of the library."""

    every_s, times = EVERY_S, TIMES

    def __init__(self, config: MemberConfig, listener: ClientListener) -> None:
        """Connects the library's client. Raises ConfigError if the client refuses its settings."""
        self._config, self._listener = config, listener
        self._turns = BugTrigger(Path(config.run) / "events", self.every_s, self.times)
        self._owned: Set[Tp] = set()
        self._library = adapters.connect(config, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def assigned(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        self._owned.update(partitions)
        self._listener.assigned(partitions, apply)

    def revoked(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        self._owned.difference_update(partitions)
        self._listener.revoked(partitions, apply)

    def lost(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        self._owned.difference_update(partitions)
        self._listener.lost(partitions, apply)

    def committed(self, offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
        """See ``ClientListener``."""
        self._listener.committed(offsets, errors)

    def error(self, name: str, text: str, fatal: bool) -> None:
        """See ``ClientListener``."""
        self._listener.error(name, text, fatal)

    @property
    def _due(self) -> bool:
        """Whether the bug acts now: it is due, and the member owns partitions."""
        return bool(self._owned) and self._turns.due

    def _one(self) -> Optional[Tp]:
        """The partition that the bug affects, if it acts now."""
        return min(self._owned) if self._due else None


class LostRecord(FaultyClient):
    """The bug ``lost-record``, see the module."""

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        records: List[Record] = self._library.poll(most, timeout_s)
        middle = next(_middles(records), None) if self._due else None
        if middle is not None:
            self._turns.fired()
            del records[middle]
        return records


def _middles(records: List[Record]) -> Iterator[int]:
    """The positions of records that have a record of their partition before them and one after them."""
    places = [record[:2] for record in records]
    return (n for n, place in enumerate(places) if place in places[:n] and place in places[n + 1 :])


class TornValue(FaultyClient):
    """The bug ``torn-value``, see the module."""

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        return [
            (*record[:4], _torn(*record[3:]), None)  # without headers, the value identifies the record
            for record in self._library.poll(most, timeout_s)
        ]


def _torn(key: Optional[bytes], value: Optional[bytes], headers: Headers) -> bytes:
    number, writer, _ = unpack(key, carrier(value, headers))
    return pack(writer, time.monotonic_ns(), number)


class LateRecord(FaultyClient):
    """The bug ``late-record``, see the module."""

    def __init__(self, config: MemberConfig, listener: ClientListener) -> None:
        """Raises ConfigError."""
        super().__init__(config, listener)
        self._last: Dict[Tp, Record] = {}
        self._given_up_s: Dict[Tp, float] = {}

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        records: List[Record] = self._library.poll(most, timeout_s)
        self._last.update((record[:2], record) for record in records)
        long_ago_s = time.monotonic() - LATE_S
        late = [tp for tp, at_s in self._given_up_s.items() if at_s <= long_ago_s and tp not in self._owned]
        for tp in late:
            del self._given_up_s[tp]
        return records + [self._last[tp] for tp in late if tp in self._last]

    def revoked(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        super().revoked(partitions, apply)
        self._given_up_s.update(dict.fromkeys(partitions, time.monotonic()))


class PausedForEver(FaultyClient):
    """The bug ``paused-for-ever``, see the module."""

    times = 1

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        tp = self._one()
        if tp:
            self._turns.fired()
            self._library.pause(tp)
        return self._library.poll(most, timeout_s)  # type: ignore[no-any-return]


class SlowStart(FaultyClient):
    """The bug ``slow-start``, see the module."""

    every_s, times = 0.0, ALWAYS

    def __init__(self, config: MemberConfig, listener: ClientListener) -> None:
        """Raises ConfigError."""
        super().__init__(config, listener)
        self._loaded_s: Dict[Tp, float] = {}

    def assigned(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        super().assigned(partitions, apply)
        if self._turns.due:
            self._loaded_s.update(dict.fromkeys(partitions, time.monotonic() + LOADS_S))
            for tp in partitions:
                self._library.pause(tp)

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        now_s = time.monotonic()
        for tp in [tp for tp, at_s in self._loaded_s.items() if at_s <= now_s]:
            del self._loaded_s[tp]
            if tp in self._owned:
                self._library.resume(tp)
        return self._library.poll(most, timeout_s)  # type: ignore[no-any-return]


class ReadsUncommitted(FaultyClient):
    """The bug ``reads-uncommitted``, see the module."""

    def __init__(self, config: MemberConfig, listener: ClientListener) -> None:
        """Raises ConfigError."""
        real = {**config.client_config, ISOLATION: "read_uncommitted"}
        super().__init__(replace(config, client_config=real), listener)
        self.settings = {**self._library.settings, ISOLATION: config.client_config.get(ISOLATION, READ_COMMITTED)}


CLIENTS = {
    "lost-record": LostRecord,
    "torn-value": TornValue,
    "late-record": LateRecord,
    "paused-for-ever": PausedForEver,
    "slow-start": SlowStart,
    "reads-uncommitted": ReadsUncommitted,
}
