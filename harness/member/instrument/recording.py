"""Records one consumer object of a user's program, in the same form as our own loop is recorded.

The instrument of a library calls it for each call of the program, with the types of ``adapters``; nothing here depends
on a library.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from fencepost_member.adapters import Record
from fencepost_member.committing.commits import Answer, begun
from fencepost_member.instrument.consumer_names import Claim
from fencepost_member.instrument.in_flight import InFlight
from fencepost_member.instrument.program import InstrumentedProgram
from fencepost_member.instrument.taken import Taking
from fencepost_member.member_events import MemberReporter
from fencepost_member.ownership import Tp, rows


class Unanswered(NamedTuple):
    """An asynchronous commit that has no answer yet."""

    meant: Dict[Tp, int]  # the offsets, as far as known
    named: bool  # whether the client sends these offsets
    answered: Answer


class Recording:
    """A consumer; it is recorded once it subscribes to the run's topics.

    Attributes:
        on: whether it is recorded. Methods that do not check it may only be called while it is True.
        inherited: whether it was recorded in the parent process, from which this process was forked.
    """

    def __init__(
        self, program: InstrumentedProgram, claim: Optional[Claim], identity: Callable[[], Tuple[str, int]]
    ) -> None:
        """The consumer has not subscribed yet. ``claim``: its name in the group; ``identity``: see ``Adapter``."""
        self.on, self.inherited, self._barred = False, False, ""  # the reason why it cannot be recorded any more
        self._program, self._claim, self._identity = program, claim, identity
        self._topics = frozenset(program.config.topics)
        self._in_hand = InFlight(program.config.loop.processed)
        self._delivering = threading.Lock()  # programs may poll one consumer on several threads
        self._stored: Dict[Tp, int] = {}  # the offsets that a commit without offsets commits
        self._accepted: Dict[Tp, int] = {}  # the offsets that the group has accepted
        self._unanswered: List[Unanswered] = []
        self._commits, self._fatal, self._forked = "sync", False, False
        program.knows(self)

    def subscribing(self, topics: Sequence[str]) -> None:
        """The program subscribes; if it names a topic of the run, the consumer is recorded from now on."""
        if self.on or not self.wants(topics):
            return
        if self._claim is None or self._barred:
            why = self._barred or "in another group than the first one of the program"
            self._program.unrecorded("a consumer of process %d reads the run's topics, %s" % (os.getpid(), why))
            return
        config = replace(self._program.config, actor=self._claim.name, instance_id=self._claim.instance_id)
        self._events, self._lane = self._program.history(self._claim)
        lane = self._lane  # without a reference to self, the name becomes free when the consumer is freed
        self._account = MemberReporter(config, self._events, lambda: lane, self._identity)
        self.on = True
        if config.learning:
            self._events.note("subscribed", detail={"topics": list(topics), "group": self._program.own_group})

    def wants(self, topics: Sequence[str]) -> bool:
        """Whether names or patterns (which begin with ``^``) match a topic of the run. All do while the topics are
        still to be learned."""
        if self._program.config.learning:
            return True
        like = any(re.match(name, topic) for name in topics for topic in self._topics if name.startswith("^"))
        return like or not self._topics.isdisjoint(topics)

    def subscribed(self, topics: Sequence[str], client: str, version: str, protocol: str, settings: Any) -> None:
        """The consumer has subscribed; the first time is recorded as its start."""
        if not self._account.introduced:
            own = {"client": client, "protocol": protocol, "commit": "by the program", "argv": sys.argv}
            own["processed"] = self._program.config.loop.processed
            self._account.started(version, settings, **own)
        else:
            self._events.note("subscribed", detail={"topics": sorted(self._topics.intersection(topics))})

    def off(self) -> bool:
        """Whether the consumer is not recorded. Its first use in a forked process is reported."""
        if self._forked:
            self._forked = False
            self.used_by_fork()
        return not self.on

    def used_by_fork(self) -> None:
        """A forked process uses the consumer of its parent for the first time."""
        self._program.unrecorded("process %d, forked from a member, uses its consumer" % os.getpid())

    def polls(self, until_ns: int = 0) -> None:
        """Just before a poll, see ``MemberReporter.polling``."""
        try:
            self._in_hand.polling()
        except Exception as error:
            self.broken(error)
        else:
            self.waits(until_ns)

    def waits(self, until_ns: int = 0) -> None:
        """The consumer is in a poll, which may wait until ``until_ns``; instruments repeat this in long polls."""
        try:
            self._account.polling(until_ns)
        except Exception as error:
            self.broken(error)

    def taking(self, count: int) -> Optional[Taking]:
        """Follows what the program takes out of the lists of a poll with ``count`` records; None: nobody asks."""
        return self._in_hand.taking(count)

    def delivered(
        self,
        records: Iterable[Record],
        stores: bool,
        taking: Optional[Taking] = None,
        positions: Sequence[int] = (),
    ) -> None:
        """A poll returned records of the run's topics.

        Args:
            stores: the client stores their offsets now.
            taking, positions: see ``InFlight.delivered``.
        """
        with self._delivering:
            work = self._account.delivered(records)
            self._in_hand.delivered(self._lane, work, taking, positions)
        if stores:
            self._stored.update((tp, next_offset) for _, tp, next_offset in work)

    def owns(self, tp: Tp) -> bool:
        """Whether the consumer owns the partition now."""
        return self.on and tp in self._account.ownership.intervals

    def processed(self, tp: Tp, next_offset: int) -> bool:
        """The program reports a record as processed, on any thread. Returns whether it was in flight here."""
        try:
            return self.on and self._in_hand.processed(tp, next_offset)
        except Exception as error:
            self.broken(error)
            return True

    def ours(self, partitions: Iterable[Tp]) -> List[Tp]:
        """The partitions that belong to the run's topics."""
        return [tp for tp in partitions if tp[0] in self._topics]

    @contextmanager
    def assigned_callback(self, partitions: List[Tp]) -> Iterator[None]:
        """Around the assigned callback, including the program's own."""
        self._in_hand.assigned(partitions)
        with self._account.assigned_callback(partitions):
            yield

    @contextmanager
    def revoked_callback(self, kind: str, partitions: List[Tp]) -> Iterator[None]:
        """Around the callback ``revoked`` or ``lost``, including the program's own."""
        self._commits = "on-revoke"
        try:
            with self._account.revoked_callback(kind, partitions):
                yield
        finally:
            self._commits = "sync"
            for tp in partitions:
                self._stored.pop(tp, None)
                self._accepted.pop(tp, None)

    def stored(self) -> Dict[Tp, int]:
        """The offsets that a commit without offsets may commit. The client may commit fewer: it may have an answer that
        the program has not seen yet."""
        return {tp: offset for tp, offset in self._stored.items() if self._accepted.get(tp, -1) < offset}

    def storing(self, offsets: Mapping[Tp, int]) -> None:
        """The program stores offsets, for the client to commit."""
        self._in_hand.committing(offsets)
        self._stored.update(offsets)

    def committing(self, offsets: Dict[Tp, int], wait: bool, named: bool, mode: str = "") -> Answer:
        """A commit begins. Call the returned function with its answer.

        Args:
            wait: whether the program waits for the answer; else ``committed`` or ``nothing_to_commit`` ends the commit.
            named: whether the program named the offsets; else they are the stored ones.
            mode: the event's ``mode``, if it does not follow from ``wait``.
        """
        self._in_hand.committing(offsets)
        record = begun(self._events, self._identity, offsets, mode or (self._commits if wait else "async"), named)

        def answered(offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
            if entry in self._unanswered:
                self._unanswered.remove(entry)
            self._accept(offsets, errors)
            record(offsets, errors)

        entry = Unanswered(offsets, named, answered)
        if not wait and (offsets or not named):
            self._unanswered.append(entry)
        return answered

    def committed(self, offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
        """The client ended a commit without a waiting call: an asynchronous one of the program, or an auto-commit. It
        answers commits in the order of the calls; a commit of stored offsets may include offsets that were stored after
        the call. Without offsets it concerned topics that are not the run's."""
        if not offsets:
            return

        def may_be(entry: Unanswered) -> bool:
            return not entry.named or all(entry.meant.get(tp) == offset for tp, offset in offsets.items())

        if entry := next(filter(may_be, self._unanswered), None):
            entry.answered(offsets, errors)
        else:
            self._accept(offsets, errors)
            self._account.answered(offsets, errors)

    def nothing_to_commit(self, error: str) -> None:
        """The client reports that an asynchronous commit of stored offsets had nothing to commit. That is the first one
        for which no stored offsets were known, since this answer may overtake one of the coordinator; or else the first
        one."""
        of_stored = [entry for entry in self._unanswered if not entry.named]
        if entry := next((entry for entry in of_stored if not entry.meant), next(iter(of_stored), None)):
            entry.answered(entry.meant, dict.fromkeys(entry.meant, error))

    def _accept(self, offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
        self._accepted.update((tp, offset) for tp, offset in offsets.items() if not errors[tp])

    def to_the_end(self) -> None:
        """The program moves its position to the end."""
        self.outside("the member moves to the end of a partition, whose offset is unknown")

    def seeking(self, offsets: Dict[Tp, int]) -> Callable[[], None]:
        """The program begins to move its position (to offset 0 for the beginning). Call the returned function at the
        end."""
        for tp, offset in offsets.items():  # stored offsets stay: librdkafka still commits them
            self._in_hand.released([tp], offset)
        event = self._events.begin("seek", partitions=rows(offsets))
        return lambda: self._events.end(event)

    def pauses(self, partitions: Iterable[Tp]) -> None:
        """The program pauses partitions."""
        if self.on:
            self._account.paused(partitions)

    def resumes(self, partitions: Iterable[Tp]) -> None:
        """The program resumes partitions, whether they were paused or not."""
        if self.on:
            self._account.resumed(partitions)

    def error(self, name: str, text: str, fatal: bool) -> None:
        """The client reports an error by Kafka's name."""
        self._fatal = self._fatal or fatal
        self._account.error(name, text, fatal)

    def closing(self) -> None:
        """The program begins to close its consumer. Unless it does so in an exception, its records are processed."""
        if self.on:
            self._account.closing()
            if sys.exc_info()[0] is None:
                self._in_hand.polling()

    def closed(self) -> None:
        """The consumer is closed."""
        if self.on and not self._fatal:
            self._events.note("closed", detail={"polls": self._account.polls, "records": self._in_hand.done})
        self._leave("after it was closed")

    def broken(self, error: BaseException) -> None:
        """The recorder failed: continue without recording."""
        self.on, self._barred = False, "after its recorder failed"
        self._program.unrecorded("the recorder failed with %r" % error)

    def outside(self, what: str) -> None:
        """The program does something that cannot be recorded."""
        self._program.unrecorded(what)

    def stay_behind(self) -> None:
        """This process was forked from the process that created the consumer: stop recording here."""
        self._forked = self.inherited = self.on
        self._leave("though it was made before that process was forked")

    def _leave(self, why: str) -> None:
        self.on, self._barred = False, why
        if self._claim is not None:
            self._claim.release()
