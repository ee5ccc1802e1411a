"""Writes the history of a member: delivered records, callbacks, commits, errors, and gaps between its polls.

Our loop and the instruments of user programs both use it, so that all histories have one form.
"""

from __future__ import annotations

import itertools
import os
import platform
import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from fencepost_member import kafka_errors
from fencepost_member.adapters import Record
from fencepost_member.committing.commits import Work, by_answer
from fencepost_member.config import MemberConfig, PartitionNumbers
from fencepost_member.ownership import AssignmentNumbers, Tp, names, places
from fencepost_member.payload import carrier, unpack
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import MemberLane

GAP_NS = 1_000_000_000  # a longer time between two polls is an event
FOR_EVER_NS = 1 << 62
SECRET_WORDS = ("password", "secret", "key.pem", "key.location", "jaas", "oauthbearer.config", "token")


class MemberReporter:
    """Records one incarnation of a member.

    Attributes:
        events: its event log.
        ownership: the partitions that it owns, by its callbacks.
        polls: number of polls so far.
        introduced: whether the event ``started`` was written.
    """

    def __init__(
        self,
        config: MemberConfig,
        events: EventLog,
        lane: Callable[[], MemberLane],
        identity: Callable[[], Tuple[str, int]],
    ) -> None:
        """``lane`` returns the lane of the calling thread; ``identity`` as in ``Adapter``."""
        self.events, self.ownership, self.polls = events, AssignmentNumbers(), 0
        self.introduced = False
        self._config, self._lane, self._identity = config, lane, identity
        self._numbers, self._numbered, self._polled_ns = PartitionNumbers(config.topics), itertools.count(), 0
        self._at_close: Optional[Tuple[str, int]] = None
        self._paused: Dict[Tp, int] = {}  # paused partition -> id of its event
        self._pausing = threading.Lock()  # programs pause on any thread

    def started(self, client_version: str, settings: Any, **more: Any) -> None:
        """The member starts with these client settings; ``more`` adds to or replaces fields of the event's detail."""
        config = self._config
        detail = {
            "pid": os.getpid(),
            "slot": config.slot,
            "member": config.member,
            "client": config.client,
            "client_version": client_version,
            "python": platform.python_version(),
            "protocol": config.protocol,
            "instance_id": config.instance_id,
            "commit": config.loop.commit,
            "planted_bug": config.loop.planted_bug,
            "config": redacted(settings),
            **more,
        }
        self.events.note("started", detail=detail)
        self.introduced = True

    def polling(self, until_ns: int = 0) -> None:
        """Just before a poll. If it may wait for records, ``until_ns`` says until when, and ``polled`` follows. A poll
        is not an event; the recorder keeps the time of the last one, in case no other follows."""
        at_ns = self._lane().polled(until_ns)
        before_ns, self._polled_ns = self._polled_ns, until_ns or at_ns
        if before_ns and at_ns - before_ns > GAP_NS:
            self.events.note("poll-gap", begin_ns=before_ns, end_ns=at_ns)

    def polled(self) -> None:
        """A poll that might wait has returned. While it waited, the member polled."""
        self._polled_ns = min(self._polled_ns, self._lane().polled())

    def delivered(self, records: Iterable[Record]) -> Work:
        """Record the records that a poll returned, as delivered."""
        recorded, intervals, numbers = self._lane().delivered, self.ownership.intervals, self._numbers
        poll = next(self._numbered)
        self.polls = poll + 1
        work: Work = []
        for position, (topic, partition, offset, key, value, headers) in enumerate(records):
            tp = (topic, partition)
            number, writer, seq = unpack(key, carrier(value, headers) if headers else value)
            index = recorded(numbers[tp], offset, number, writer, seq, intervals.get(tp, -1), poll, position)
            work.append((index, tp, offset + 1))
        return work

    @contextmanager
    def assigned_callback(self, partitions: List[Tp]) -> Iterator[None]:
        """Around the assigned callback."""
        self.resumed(partitions)
        event = self._begin("assigned", partitions, self.ownership.assign(partitions))
        try:
            yield
        finally:
            self.events.end(event)

    @contextmanager
    def revoked_callback(self, kind: str, partitions: List[Tp]) -> Iterator[None]:
        """Around the callback ``revoked`` or ``lost``."""
        event = self._begin(kind, partitions, self.ownership.of(partitions))
        try:
            yield
        finally:
            self.ownership.revoke(partitions)
            self.resumed(partitions)
            self.events.end(event)

    def paused(self, partitions: Iterable[Tp]) -> None:
        """Partitions were paused. The pause ends when they are resumed or revoked. (Some clients keep it after a
        revocation, which no callback shows.)"""
        with self._pausing:
            for tp in set(partitions).difference(self._paused).intersection(self.ownership.intervals):
                self._paused[tp] = self.events.begin("paused", partitions=places([tp]))

    def resumed(self, partitions: Iterable[Tp]) -> None:
        """Partitions were resumed, whether they were paused or not."""
        with self._pausing:
            for tp in set(partitions).intersection(self._paused):
                self.events.end(self._paused.pop(tp))

    def closing(self) -> None:
        """Just before the client is closed: remember its member id and generation for its last auto-commits. They
        cannot be queried then: librdkafka 2.16 never answers requests while it leaves its group
        (``rd_kafka_cgrp_op_serve``; see librdkafka#4041)."""
        self._at_close = self._identity()

    def answered(self, offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
        """An auto-commit of the client ended. Its begin is unknown; the time of the answer is the latest possible."""
        member_id, generation = self._at_close or self._identity()
        for answer in by_answer(offsets, errors):
            self.events.note("commit", member_id=member_id, generation=generation, detail={"mode": "auto"}, **answer)

    def error(self, name: str, text: str, fatal: bool) -> None:
        """The client reports an error by Kafka's name."""
        detail = {"text": text, "fatal": fatal, "retriable": kafka_errors.rule(name).retriable}
        self.events.note("error", error=name, detail=detail)

    def _begin(self, kind: str, partitions: List[Tp], intervals: Dict[Tp, int]) -> int:
        member_id, generation = self._identity()
        return self.events.begin(
            kind,
            partitions=places(partitions),
            member_id=member_id,
            generation=generation,
            detail={"intervals": names(intervals)},
        )


def redacted(settings: Any) -> Dict[str, Any]:
    """Client settings with their secrets replaced, for the history."""
    return {
        name: "(redacted)" if any(word in name for word in SECRET_WORDS) else value for name, value in settings.items()
    }
