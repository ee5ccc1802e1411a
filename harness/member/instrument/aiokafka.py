"""The instrument of aiokafka: it replaces functions of the library's classes, so subclasses get them, too.

Arguments, results and exceptions of each call are passed on unchanged. Iteration calls ``getone``. Records are recorded
where the client's fetcher returns them, below the public calls: both these and frameworks (faust-streaming) fetch
there. The library does not distinguish lost partitions from revoked ones, and runs no callback at close. It reports no
auto-commits either, so every commit request that the program did not make is recorded as one.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import SimpleNamespace
from typing import Any, Iterable, Iterator, Mapping, Optional, Set

import aiokafka
from aiokafka.consumer.fetcher import Fetcher as LibraryFetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator

from fencepost_member.adapters.aiokafka import NAME, client_arguments, identity
from fencepost_member.adapters.errors import error_name
from fencepost_member.instrument.program import InstrumentedProgram
from fencepost_member.instrument.python_recorder import (
    PythonRecorder,
    alike,
    offsets_of,
    reaching,
    replace,
    subscription,
)
from fencepost_member.instrument.transactions import InstrumentedTransactions
from fencepost_member.payload import HEADER

PROGRAM = InstrumentedProgram.of_environment()
OWN, OWN_PRODUCER, OWN_COORDINATOR, OWN_FETCHER = (SimpleNamespace() for _ in range(4))  # the library's own functions
_transactions = partial(InstrumentedTransactions.of, program=PROGRAM, error_name=error_name)
LOOK_S = 0.5
_polling: ContextVar[Any] = ContextVar("fencepost_polling", default=None)  # the recording that is in a poll now


def instrument(library: Any) -> None:
    """Replace the functions in the package, which was just loaded. Consumers, producers and administrators all connect
    to brokers through its ``AIOKafkaClient``."""
    for calls in (Consumer, alike(OWN)):
        vars(OWN).update(vars(replace(library.AIOKafkaConsumer, calls)))
    vars(OWN_PRODUCER).update(vars(replace(library.AIOKafkaProducer, Producer)))
    vars(OWN_COORDINATOR).update(vars(replace(GroupCoordinator, CoordinatorCalls)))
    vars(OWN_FETCHER).update(vars(replace(LibraryFetcher, Fetcher)))
    replace(library.AIOKafkaClient, _reaching(library.AIOKafkaClient.__init__))


def _reaching(own: Any) -> Any:
    def __init__(self: Any, **keywords: Any) -> None:  # noqa: N807 (it becomes a method)
        own(self, **reaching(keywords, client_arguments(PROGRAM.reaching({}))))

    return SimpleNamespace(__init__=__init__)


class AioRecorder(PythonRecorder):
    """Counts the tasks that wait in a poll, however long: the member polls as long as the event loop runs."""

    waiting, _watched = 0, False

    def watch(self) -> None:
        """Record every ``LOOK_S`` that tasks wait in a poll, from the first poll on."""
        if not self._watched:
            self._watched = True
            self._look(asyncio.get_running_loop())

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.waiting and self.on:
            self.waits()
        if self.on:
            loop.call_later(LOOK_S, self._look, loop)


class Producer:
    """Replaces functions of ``aiokafka.AIOKafkaProducer``. It records the offsets in transactions and whether the
    producer is idempotent, and nothing else."""

    _txn_manager: Any

    def __init__(self, *args: Any, **keywords: Any) -> None:
        """As the library's; only an idempotent producer has a transaction manager."""
        OWN_PRODUCER.__init__(self, *args, **keywords)  # type: ignore[misc]
        PROGRAM.producing(NAME, self._txn_manager is not None)

    async def begin_transaction(self) -> None:
        """As the library's."""
        await OWN_PRODUCER.begin_transaction(self)
        _transactions(self).begun()

    async def send_offsets_to_transaction(self, offsets: Any, group_id: Any) -> None:
        """As the library's, with the group's name in this run."""
        with _transactions(self).sending(offsets_of(offsets)):
            await OWN_PRODUCER.send_offsets_to_transaction(self, offsets, PROGRAM.group(group_id))

    async def commit_transaction(self) -> None:
        """As the library's."""
        with _transactions(self).ending(committed=True):
            await OWN_PRODUCER.commit_transaction(self)

    async def abort_transaction(self) -> None:
        """As the library's."""
        with _transactions(self).ending(committed=False):
            await OWN_PRODUCER.abort_transaction(self)


class Consumer:
    """Replaces functions of ``aiokafka.AIOKafkaConsumer``."""

    _fencepost: AioRecorder
    _subscription: Any

    def __init__(self, *topics: Any, **keywords: Any) -> None:
        group = keywords.get("group_id")
        ours, claim = (PROGRAM.reaching({}), None) if group is None else PROGRAM.consuming({"group.id": group})
        settings = reaching({**keywords, "group_id": group}, client_arguments(ours))
        self._fencepost = tape = AioRecorder(PROGRAM, claim, self, settings, identity, _consumed)
        OWN.__init__(self, **settings)  # type: ignore[misc]
        self._subscription._fencepost = tape  # consumer, coordinator and fetcher share this object
        if topics:
            Consumer.subscribe(self, topics)

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """As the library's."""
        tape = self._fencepost
        topics, pattern = subscription(PROGRAM, topics, pattern)
        tape.asks(topics, pattern)
        OWN.subscribe(self, topics, pattern, _listener(tape, listener) if tape.on else listener)
        if tape.on:
            tape.subscribed(list(topics or ()), NAME, str(aiokafka.__version__), "eager", tape.plain())

    async def getone(self, *partitions: Any) -> Any:
        """As the library's, which calls its fetcher."""
        with _poll_of(self._fencepost):
            return await OWN.getone(self, *partitions)

    async def getmany(self, *partitions: Any, **options: Any) -> Any:
        """As the library's, which calls its fetcher."""
        with _poll_of(self._fencepost):
            return await OWN.getmany(self, *partitions, **options)

    async def commit(self, offsets: Any = None) -> None:
        """As the library's."""
        if not self._fencepost.on:
            await OWN.commit(self, offsets)
            return
        with self._fencepost.commits(offsets):
            await OWN.commit(self, offsets)

    async def seek_to_beginning(self, *partitions: Any) -> Any:
        """As the library's."""
        went = self._fencepost.goes_to_the_beginning(partitions)
        moved = await OWN.seek_to_beginning(self, *partitions)
        went()
        return moved

    async def seek_to_end(self, *partitions: Any) -> Any:
        """As the library's."""
        self._fencepost.goes_to_the_end()
        return await OWN.seek_to_end(self, *partitions)

    async def seek_to_committed(self, *partitions: Any) -> Any:
        """As the library's. The committed offsets are known only afterwards."""
        committed = await OWN.seek_to_committed(self, *partitions)
        self._fencepost.goes({tp: at for tp, at in (committed or {}).items() if at})()
        return committed

    async def stop(self) -> None:
        """As the library's."""
        self._fencepost.closing()
        await OWN.stop(self)
        self._fencepost.closed()


class CoordinatorCalls:
    """Replaces a function of ``GroupCoordinator`` through which every commit request passes."""

    _subscription: Any

    async def _do_commit_offsets(self, assignment: Any, offsets: Any) -> None:
        tape = getattr(self._subscription, "_fencepost", None)
        if tape is None:
            await OWN_COORDINATOR._do_commit_offsets(self, assignment, offsets)
            return
        with tape.commits_by_itself(offsets):
            await OWN_COORDINATOR._do_commit_offsets(self, assignment, offsets)


class Fetcher:
    """Replaces functions of ``Fetcher`` through which all records of a consumer pass."""

    _subscriptions: Any

    async def next_record(self, partitions: Any) -> Any:
        """As the library's."""
        tape = getattr(self._subscriptions, "_fencepost", None)
        with _poll_of(tape):
            record = await OWN_FETCHER.next_record(self, partitions)
        if tape is not None and tape.on:
            tape.returned_records((record,))
            _without_ours((record,))
        return record

    async def fetched_records(self, partitions: Any, *args: Any, **options: Any) -> Any:
        """As the library's."""
        tape = getattr(self._subscriptions, "_fencepost", None)
        with _poll_of(tape):
            found = await OWN_FETCHER.fetched_records(self, partitions, *args, **options)
        if tape is not None and tape.on:
            records = [record for part in found.values() for record in part]
            tape.returned_lists(found)
            _without_ours(records)
        return found


@contextmanager
def _poll_of(tape: Optional[AioRecorder]) -> Iterator[None]:
    """Around a call that waits for records; nested calls count as one poll."""
    before = _polling.get()
    if tape is None or before is tape or tape.off():
        yield
        return
    tape.watch()
    tape.waiting += 1
    _polling.set(tape)
    try:
        with tape.polling_for_records():
            yield
    finally:
        _polling.set(before)
        tape.waiting -= 1


def _without_ours(records: Iterable[Any]) -> None:
    """Remove our header from records: it is not text, and frameworks expect all headers to be text."""
    for record in records:
        if any(name == HEADER for name, _ in record.headers):
            record.headers = tuple(header for header in record.headers if header[0] != HEADER)


def _consumed(consumer: Any) -> Mapping[Any, Any]:
    found: Mapping[Any, Any] = consumer._subscription.subscription.assignment.all_consumed_offsets()
    return found


def _listener(tape: PythonRecorder, own: Any) -> Any:
    """A rebalance listener that records and calls the program's own, whose methods may be coroutines."""
    if own is not None and not isinstance(own, aiokafka.ConsumerRebalanceListener):
        return own  # the library will refuse it

    class SyncListener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Set[Any]) -> None:
            with tape.called("assigned", assigned):
                answer = own and own.on_partitions_assigned(assigned)
                if asyncio.iscoroutine(answer):
                    await answer

        async def on_partitions_revoked(self, revoked: Set[Any]) -> None:
            with tape.called("revoked", revoked):
                answer = own and own.on_partitions_revoked(revoked)
                if asyncio.iscoroutine(answer):
                    await answer

        def __repr__(self) -> str:
            return repr(own)

    return SyncListener()
