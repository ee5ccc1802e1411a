"""Records one consumer of confluent-kafka: converts its messages, partitions, errors and callbacks to our types."""

from __future__ import annotations

import os
import weakref
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from confluent_kafka import cimpl

from fencepost_member.adapters.confluent.consumer import identity
from fencepost_member.adapters.confluent.errors import error_event, error_name
from fencepost_member.adapters.confluent.values import answered
from fencepost_member.adapters.settings import STRATEGY
from fencepost_member.instrument.consumer_names import Claim
from fencepost_member.instrument.program import InstrumentedProgram
from fencepost_member.instrument.recording import Recording
from fencepost_member.instrument.taken import TakenList, Taking
from fencepost_member.member_events import FOR_EVER_NS
from fencepost_member.ownership import Tp

BEGINNING, END = cimpl.OFFSET_BEGINNING, cimpl.OFFSET_END
MOMENT_S = 0.5  # a poll with at most this timeout counts as one that does not wait
FOR_EVER_S = 1e9  # a poll with at least this timeout counts as one without a timeout


def offsets_of(partitions: Iterable[Any]) -> Dict[Tp, int]:
    """The next offsets of partitions, without negative (logical) offsets."""
    return {(p.topic, p.partition): p.offset for p in partitions if p.offset >= 0}


class ConfluentRecorder(Recording):
    """See the module.

    Attributes:
        asynchronous: whether the consumer is inside an asyncio consumer, whose instrument records the delivered records
            and the close (see ``confluent_aio``).
    """

    asynchronous = False

    def __init__(
        self, program: InstrumentedProgram, claim: Optional[Claim], consumer: Any, settings: Dict[str, Any]
    ) -> None:
        """``consumer`` is referenced weakly, so that it is freed when the program drops it."""
        known = weakref.ref(consumer)

        def who() -> Any:
            alive = known()
            return identity(alive) if alive is not None else ("", -1)

        super().__init__(program, claim, who)
        self._settings = settings
        self._until_ns = 0  # until when the present poll may wait; 0: there is none that waits
        self._stores = str(settings.get("enable.auto.offset.store", True)).lower() == "true"

    def callbacks(self) -> Dict[str, Any]:
        """The client's callbacks: they record and call the program's own."""
        error_cb, on_commit = self._settings.get("error_cb"), self._settings.get("on_commit")

        def failed(error: Any) -> None:
            if self.on:
                self.error(*error_event(error))
            if error_cb is not None:
                with self.called():
                    error_cb(error)

        def committed(error: Any, partitions: List[Any]) -> None:
            whole = error_name(error)
            if self.on and (whole == "LOCAL_NO_OFFSET" or (whole and not partitions)):
                self.nothing_to_commit(whole)
            elif self.on:
                self.committed(*self.answers(partitions, whole))
            if on_commit is not None:
                with self.called():
                    on_commit(error, partitions)

        return {"error_cb": failed, "on_commit": committed}

    def around(self, callbacks: Mapping[str, Any]) -> Dict[str, Any]:
        """The callbacks of a subscription: they record and call the program's own. If the program has none for lost
        partitions, that for revoked partitions is called, as the library does."""
        assign, revoke = callbacks.get("on_assign"), callbacks.get("on_revoke")
        lose = callbacks.get("on_lost") or revoke

        def assigned(consumer: Any, partitions: List[Any]) -> None:
            with self.called(), self.assigned_callback(self.places(partitions)):
                if assign is not None:
                    assign(consumer, partitions)

        def gone(kind: str, own: Optional[Callable[..., None]]) -> Callable[..., None]:
            def called(consumer: Any, partitions: List[Any]) -> None:
                with self.called(), self.revoked_callback(kind, self.places(partitions)):
                    if own is not None:
                        own(consumer, partitions)

            return called

        ours = {"on_assign": assigned, "on_revoke": gone("revoked", revoke), "on_lost": gone("lost", lose)}
        return {**callbacks, **ours}

    @property
    def protocol(self) -> str:
        """The group protocol that follows from the settings."""
        if self._settings.get("group.protocol", "classic") == "consumer":
            return "consumer"
        return "cooperative" if "cooperative" in self._settings.get(STRATEGY, "") else "eager"

    def plain(self) -> Dict[str, Any]:
        """The settings in a form that JSON can hold, without callbacks."""
        return {
            name: value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
            for name, value in self._settings.items()
            if not callable(value)
        }

    def asked(self, wait_s: Any) -> None:
        """Just before a poll that may wait ``wait_s`` for records (negative: without a timeout). The library's call
        reports nothing while it waits. ``returned`` follows."""
        try:
            moment, endless = 0 <= wait_s <= MOMENT_S, not 0 <= wait_s < FOR_EVER_S
        except TypeError:  # the library will refuse it
            moment, endless = True, False
        self._until_ns = 0 if moment else FOR_EVER_NS if endless else monotonic_ns() + int(wait_s * 1e9)
        self.polls(self._until_ns)

    def returned(self) -> None:
        """The poll has returned or raised."""
        if self._until_ns and self.on:
            self._until_ns = 0
            try:
                self._account.polled()
            except Exception as error:
                self.broken(error)

    @contextmanager
    def called(self) -> Iterator[None]:
        """Around a callback of the program: a poll that runs the callback does not wait meanwhile."""
        until_ns = self._until_ns
        self.returned()
        try:
            yield
        finally:
            if until_ns and self.on:
                self._until_ns = until_ns
                self.waits(until_ns if until_ns > monotonic_ns() else 0)

    def returned_list(self, messages: Any) -> Any:
        """A poll returned a list of messages; returns one that shows what the program takes out of it."""
        taking = self.taking(len(messages)) if self.on and isinstance(messages, list) else None
        self.returned_records(messages, taking)
        return messages if taking is None else TakenList(messages, taking)

    def returned_records(self, messages: Iterable[Any], taking: Optional[Taking] = None) -> None:
        """A poll returned messages: records, errors, and ends of partitions; ``taking`` follows which are taken."""
        records, positions, topics = [], [], self._topics
        if not self.on:  # it was closed while an asyncio consumer had these messages in flight
            return
        try:
            for position, m in enumerate(messages):
                error = m.error()
                if error is not None:
                    if error.code() != cimpl.KafkaError._PARTITION_EOF:
                        self.error(*error_event(error))
                elif m.topic() in topics:
                    records.append((m.topic(), m.partition(), m.offset(), m.key(), m.value(), m.headers()))
                    positions.append(position)
            self.delivered(records, self._stores, taking, positions)
        except Exception as error:
            self.broken(error)

    def used_by_fork(self) -> None:
        """See ``Recording``. The library's threads do not exist in the fork, so it receives no further records."""
        if self._claim is not None:
            self._program.polled_by_fork(self._claim.name)

    def left_over(self, messages: Iterable[Any]) -> None:
        """A poll that is not recorded returned messages; in a forked process these were fetched before the fork."""
        if self.inherited and any(m is not None and m.error() is None and m.topic() in self._topics for m in messages):
            self._program.unrecorded("process %d, forked from a member, receives records of its consumer" % os.getpid())

    def places(self, partitions: Iterable[Any]) -> List[Tp]:
        """The partitions that belong to the run's topics."""
        return self.ours((p.topic, p.partition) for p in partitions)

    def meant(self, asked: Mapping[str, Any]) -> Dict[Tp, int]:
        """The next offsets that a commit or store call names, by a message or by partitions."""
        message, found = asked.get("message"), offsets_of(asked.get("offsets") or ())
        if message is not None:
            found[message.topic(), message.partition()] = message.offset() + 1
        return {tp: found[tp] for tp in self.ours(found)}

    def answers(self, partitions: Optional[Iterable[Any]], whole: str = "") -> Tuple[Dict[Tp, int], Dict[Tp, str]]:
        """See ``answered``, for the run's topics only."""
        return answered([p for p in partitions or () if p.topic in self._topics], whole)

    def moves(self, partitions: Iterable[Any]) -> Callable[[], None]:
        """The program sets positions, by a seek or an assignment. Call the returned function when it has."""
        mine = [p for p in partitions if p.topic in self._topics]
        if mine and not self.on:
            self.outside("the process assigns itself partitions of the run's topics, outside the group")
        if self.on and any(p.offset == END for p in mine):
            self.to_the_end()
        offsets = {(p.topic, p.partition): max(0, p.offset) for p in mine if p.offset >= 0 or p.offset == BEGINNING}
        return self.seeking(offsets) if self.on and offsets else lambda: None
