"""What a member tells of itself: the records that came, its callbacks, commits, errors, and when it did not poll.

Whoever performs the polls (our loop, or a user's program whose client is instrumented) tells it here, so that a
history has one form.
"""

from __future__ import annotations

import itertools
import os
import platform
import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from fencepost_member import outcomes
from fencepost_member.adapters import Record
from fencepost_member.commits import Work, by_answer
from fencepost_member.config import MemberConfig, Numbers
from fencepost_member.events import EventLog
from fencepost_member.ownership import Ownership, Tp, names, places
from fencepost_member.payload import carrier, unpack
from fencepost_member.recorder import MemberLane

GAP_NS = 1_000_000_000  # polls further apart than this are an event
FOR_EVER_NS = 1 << 62
SECRET_WORDS = ("password", "secret", "key.pem", "key.location", "jaas", "oauthbearer.config", "token")


class Account:
    """The account of one life of a member.

    Attributes:
        events: its event log.
        ownership: what it owns, by its callbacks.
        polls: how many there were.
        introduced: whether it has begun.
    """

    def __init__(
        self,
        config: MemberConfig,
        events: EventLog,
        lane: Callable[[], MemberLane],
        identity: Callable[[], Tuple[str, int]],
    ) -> None:
        """``lane`` gives the calling thread's; ``identity`` the member id and generation now, see ``Adapter``."""
        self.events, self.ownership, self.polls = events, Ownership(), 0
        self.introduced = False
        self._config, self._lane, self._identity = config, lane, identity
        self._numbers, self._numbered, self._polled_ns = Numbers(config.topics), itertools.count(), 0
        self._at_close: Optional[Tuple[str, int]] = None
        self._paused: Dict[Tp, int] = {}  # the events
        self._pausing = threading.Lock()  # programs pause on any thread

    def introduce(self, client_version: str, settings: Any, **more: Any) -> None:
        """The loop runs, with these settings of the client; ``more`` is beside or instead of the configuration."""
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
        """Just before a poll, which may wait for records until then; ``polled`` follows if it may. Polls by themselves
        are no events: the recorder keeps the last one's moment, for when no other follows."""
        at_ns = self._lane().polled(until_ns)
        before_ns, self._polled_ns = self._polled_ns, until_ns or at_ns
        if before_ns and at_ns - before_ns > GAP_NS:
            self.events.note("poll-gap", begin_ns=before_ns, end_ns=at_ns)

    def polled(self) -> None:
        """The poll that might wait is over. As long as it might, the member polled."""
        self._polled_ns = min(self._polled_ns, self._lane().polled())

    def delivered(self, records: Iterable[Record]) -> Work:
        """What a poll returned."""
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
    def taking(self, partitions: List[Tp]) -> Iterator[None]:
        """The assigned callback."""
        self.resumed(partitions)
        event = self._begin("assigned", partitions, self.ownership.take(partitions))
        try:
            yield
        finally:
            self.events.end(event)

    @contextmanager
    def giving_up(self, kind: str, partitions: List[Tp]) -> Iterator[None]:
        """The callback ``revoked`` or ``lost``."""
        event = self._begin(kind, partitions, self.ownership.of(partitions))
        try:
            yield
        finally:
            self.ownership.give_up(partitions)
            self.resumed(partitions)
            self.events.end(event)

    def paused(self, partitions: Iterable[Tp]) -> None:
        """The client is to fetch nothing of these. That ends when they are resumed, or given up: not all clients forget
        it then, and nobody tells."""
        with self._pausing:
            for tp in set(partitions).difference(self._paused).intersection(self.ownership.intervals):
                self._paused[tp] = self.events.begin("paused", partitions=places([tp]))

    def resumed(self, partitions: Iterable[Tp]) -> None:
        """It is to fetch these again, paused or not."""
        with self._pausing:
            for tp in set(partitions).intersection(self._paused):
                self.events.end(self._paused.pop(tp))

    def closing(self) -> None:
        """Just before the client is closed. It tells of what it commits by itself then when nobody may ask it any more
        who it is: librdkafka 2.16 never answers what it is asked while its group ends (``rd_kafka_cgrp_op_serve``; see
        librdkafka#4041)."""
        self._at_close = self._identity()

    def answered(self, offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
        """The client finished a commit that it began by itself. When that was is not known: the moment of the answer
        is the latest."""
        member_id, generation = self._at_close or self._identity()
        for answer in by_answer(offsets, errors):
            self.events.note("commit", member_id=member_id, generation=generation, detail={"mode": "auto"}, **answer)

    def error(self, name: str, text: str, fatal: bool) -> None:
        """The client reports an error by Kafka's name."""
        detail = {"text": text, "fatal": fatal, "retriable": outcomes.rule(name).retriable}
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
    """Client settings without their secrets, as they may be written down."""
    return {
        name: "(redacted)" if any(word in name for word in SECRET_WORDS) else value for name, value in settings.items()
    }
