"""The record of one consumer object of a user's program, in the form in which our own loop tells of itself.

An instrument calls it with what the program does, in the words of ``adapters``; nothing here knows a library.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from fencepost_member.account import Account
from fencepost_member.adapters import Record
from fencepost_member.commits import Answer, begun
from fencepost_member.instrument.claims import Claim
from fencepost_member.instrument.in_hand import InHand
from fencepost_member.instrument.program import Program
from fencepost_member.ownership import Tp, rows


class Unanswered(NamedTuple):
    """A commit that nobody waits for: what is meant, whether that is what the client sends, how to tell the answer."""

    meant: Dict[Tp, int]
    named: bool
    answered: Answer


class Recording:
    """A consumer; it is recorded once it subscribes to the run's topics.

    Attributes:
        on: whether it is recorded. What does not look at it first may only be called while it is so.
        inherited: whether it was recorded in the process from which this one was forked.
    """

    def __init__(self, program: Program, claim: Optional[Claim], identity: Callable[[], Tuple[str, int]]) -> None:
        """It subscribed to nothing yet. ``claim``: its name in the group; ``identity``: see ``Adapter``."""
        self.on, self.inherited, self._barred = False, False, ""  # why it cannot take part any more
        self._program, self._claim, self._identity = program, claim, identity
        self._topics = frozenset(program.config.topics)
        self._in_hand = InHand(program.config.loop.processed)
        self._delivering = threading.Lock()  # programs may poll one consumer on several threads
        self._stored: Dict[Tp, int] = {}  # what a commit without offsets commits
        self._accepted: Dict[Tp, int] = {}  # what the group accepted of it already
        self._unanswered: List[Unanswered] = []
        self._commits, self._fatal, self._forked = "sync", False, False
        program.knows(self)

    def subscribing(self, topics: Sequence[str]) -> None:
        """The program subscribes; who wants a topic of the run's takes part from now on."""
        if self.on or not self.wants(topics):
            return
        if self._claim is None or self._barred:
            told = (os.getpid(), self._barred or "in another group than the first one of the program")
            self._program.unrecorded("a consumer of process %d reads the run's topics, %s" % told)
            return
        config = replace(self._program.config, actor=self._claim.name, instance_id=self._claim.instance_id)
        self._events, self._lane = self._program.history(self._claim)
        lane = self._lane  # no reference to itself: it goes, and its name is free, with the consumer
        self._account = Account(config, self._events, lambda: lane, self._identity)
        self.on = True

    def wants(self, topics: Sequence[str]) -> bool:
        """Whether names and patterns (which begin with ``^``) mean one of the run's topics."""
        like = any(re.match(name, topic) for name in topics for topic in self._topics if name.startswith("^"))
        return like or not self._topics.isdisjoint(topics)

    def subscribed(self, topics: Sequence[str], client: str, version: str, protocol: str, settings: Any) -> None:
        """It did; the first time that is its start."""
        if not self._account.introduced:
            own = {"client": client, "protocol": protocol, "commit": "by the program", "argv": sys.argv}
            own["processed"] = self._program.config.loop.processed
            self._account.introduce(version, settings, **own)
        else:
            self._events.note("subscribed", detail={"topics": sorted(self._topics.intersection(topics))})

    def off(self) -> bool:
        """Whether it is not recorded; a process that was forked from the one that made it says so."""
        if self._forked:
            self._forked = False
            self.used_by_fork()
        return not self.on

    def used_by_fork(self) -> None:
        """This process was forked from the one that made it, and polls it, for the first time."""
        self._program.unrecorded("process %d, forked from a member, uses its consumer" % os.getpid())

    def polls(self, until_ns: int = 0) -> None:
        """Just before a poll, see ``Account.polling``."""
        try:
            self._in_hand.polling()
        except Exception as error:
            self.broken(error)
        else:
            self.waits(until_ns)

    def waits(self, until_ns: int = 0) -> None:
        """It is in a poll, which may wait for long: a client in Python tells so while it does."""
        try:
            self._account.polling(until_ns)
        except Exception as error:
            self.broken(error)

    def delivered(self, records: Iterable[Record], stores: bool) -> None:
        """What a poll returned, of the run's topics; ``stores``: the client takes it for stored from now on."""
        with self._delivering:
            work = self._account.delivered(records)
            self._in_hand.take(self._lane, work)
        if stores:
            self._stored.update((tp, next_offset) for _, tp, next_offset in work)

    def owns(self, tp: Tp) -> bool:
        """Whether the partition is its own now."""
        return self.on and tp in self._account.ownership.intervals

    def processed(self, tp: Tp, next_offset: int) -> bool:
        """The program says that it is done with a record, on any thread: whether it was given here."""
        try:
            return self.on and self._in_hand.processed(tp, next_offset)
        except Exception as error:
            self.broken(error)
            return True

    def ours(self, partitions: Iterable[Tp]) -> List[Tp]:
        """Those of the run's topics."""
        return [tp for tp in partitions if tp[0] in self._topics]

    @contextmanager
    def taking(self, partitions: List[Tp]) -> Iterator[None]:
        """The assigned callback, the program's own within."""
        self._in_hand.taken(partitions)
        with self._account.taking(partitions):
            yield

    @contextmanager
    def giving_up(self, kind: str, partitions: List[Tp]) -> Iterator[None]:
        """The callback ``revoked`` or ``lost``, the program's own within."""
        self._commits = "on-revoke"
        try:
            with self._account.giving_up(kind, partitions):
                yield
        finally:
            self._commits = "sync"
            for tp in partitions:
                self._stored.pop(tp, None)
                self._accepted.pop(tp, None)

    def stored(self) -> Dict[Tp, int]:
        """What a commit without offsets may commit: the client may know of an answer that the program was not told."""
        return {tp: offset for tp, offset in self._stored.items() if self._accepted.get(tp, -1) < offset}

    def storing(self, offsets: Mapping[Tp, int]) -> None:
        """The program stores offsets, for the client to commit."""
        self._in_hand.committing(offsets)
        self._stored.update(offsets)

    def committing(self, offsets: Dict[Tp, int], wait: bool, named: bool, mode: str = "") -> Answer:
        """A commit begins, of what the program ``named`` or of what is stored; what is returned tells its answer. One
        that is not waited for ends by ``committed`` or ``nothing_to_commit``. ``mode``: if there is one of its own."""
        self._in_hand.committing(offsets)
        tell = begun(self._events, self._identity, offsets, mode or (self._commits if wait else "async"), named)

        def answered(offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
            if entry in self._unanswered:
                self._unanswered.remove(entry)
            self._accept(offsets, errors)
            tell(offsets, errors)

        entry = Unanswered(offsets, named, answered)
        if not wait and (offsets or not named):
            self._unanswered.append(entry)
        return answered

    def committed(self, offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
        """The client finished a commit that nobody waited for: one of the program's, or one of its own. It answers them
        in the order in which it was asked, and what was stored since may be part of one of what is stored. Without
        offsets it is about topics that are not the run's."""
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
        """The client says so of a commit of what is stored that nobody waited for. The first of them is meant, unless
        nothing was known to be stored for a later one: such an answer may overtake one of the coordinator's."""
        of_stored = [entry for entry in self._unanswered if not entry.named]
        if entry := next((entry for entry in of_stored if not entry.meant), next(iter(of_stored), None)):
            entry.answered(entry.meant, dict.fromkeys(entry.meant, error))

    def _accept(self, offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
        self._accepted.update((tp, offset) for tp, offset in offsets.items() if not errors[tp])

    def to_the_end(self) -> None:
        """The program moves its position to the end."""
        self.outside("the member moves to the end of a partition, of which nobody knows the offset")

    def seeking(self, offsets: Dict[Tp, int]) -> Callable[[], None]:
        """The program moves its position, to 0 if that is to the beginning; what is returned ends that."""
        for tp, offset in offsets.items():  # what is stored stays so: librdkafka commits that all the same
            self._in_hand.let_go([tp], offset)
        event = self._events.begin("seek", partitions=rows(offsets))
        return lambda: self._events.end(event)

    def pauses(self, partitions: Iterable[Tp]) -> None:
        """The program has the client fetch nothing of these."""
        if self.on:
            self._account.paused(partitions)

    def resumes(self, partitions: Iterable[Tp]) -> None:
        """It has the client fetch them again, paused or not."""
        if self.on:
            self._account.resumed(partitions)

    def error(self, name: str, text: str, fatal: bool) -> None:
        """The client reports an error by Kafka's name."""
        self._fatal = self._fatal or fatal
        self._account.error(name, text, fatal)

    def closing(self) -> None:
        """The program closes its consumer, and is done with what it has in hand unless an error made it."""
        if self.on:
            self._account.closing()
            if sys.exc_info()[0] is None:
                self._in_hand.polling()

    def closed(self) -> None:
        """It is closed."""
        if self.on and not self._fatal:
            self._events.note("closed", detail={"polls": self._account.polls, "records": self._in_hand.done})
        self._leave("after it was closed")

    def broken(self, error: BaseException) -> None:
        """The recorder failed: go on without."""
        self.on, self._barred = False, "after its recorder failed"
        self._program.unrecorded("the recorder failed with %r" % error)

    def outside(self, what: str) -> None:
        """The program does what no history can tell."""
        self._program.unrecorded(what)

    def stay_behind(self) -> None:
        """This process was forked from the one that made it."""
        self._forked = self.inherited = self.on
        self._leave("though it was made before that process was forked")

    def _leave(self, why: str) -> None:
        self.on, self._barred = False, why
        if self._claim is not None:
            self._claim.release()
