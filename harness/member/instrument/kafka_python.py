"""The instrument of kafka-python: it replaces functions of the library's classes, so subclasses get them, too.

Arguments, results and exceptions of each call are passed on unchanged. Iteration polls inside the library, which
advances the position record by record, so each record of an iteration counts as a poll of its own. A poll that waits
calls ``_poll_once`` repeatedly, which shows that the member is polling.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, Dict, Mapping, Set

import kafka
from kafka.coordinator.consumer import ConsumerCoordinator

from fencepost_member.adapters.errors import error_name
from fencepost_member.adapters.kafka_python import AsyncListener, identity
from fencepost_member.adapters.kafka_python_settings import KNOWN, NAME, client_arguments
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

PROGRAM = InstrumentedProgram.of_environment()
OWN, OWN_PRODUCER, OWN_COORDINATOR = (SimpleNamespace() for _ in range(3))  # the library's own functions
_transactions = partial(InstrumentedTransactions.of, program=PROGRAM, error_name=error_name)


def instrument(library: Any) -> None:
    """Replace the functions in the package, which was just loaded."""
    for calls in (Consumer, alike(OWN)):
        vars(OWN).update(vars(replace(library.KafkaConsumer, calls)))
    for client in (library.KafkaProducer, library.KafkaAdminClient):
        replace(client, _reaching(client.__init__))
    vars(OWN_PRODUCER).update(vars(replace(library.KafkaProducer, Producer)))
    vars(OWN_COORDINATOR).update(vars(replace(ConsumerCoordinator, CoordinatorCalls)))


def _reaching(own: Any) -> Any:
    """The constructor of a client that connects to the run's brokers."""

    def __init__(self: Any, **configs: Any) -> None:  # noqa: N807 (it becomes a method)
        own(self, **reaching(configs, client_arguments(PROGRAM.reaching({}))))

    return SimpleNamespace(__init__=__init__)


class Producer:
    """Replaces functions of ``kafka.KafkaProducer`` (if the release has transactions). It records the offsets in
    transactions and whether the producer is idempotent, and nothing else."""

    config: Dict[str, Any]

    def __init__(self, **configs: Any) -> None:
        """As the library's. Old releases have no idempotence."""
        OWN_PRODUCER.__init__(self, **configs)  # type: ignore[misc]
        PROGRAM.producing(NAME, bool(self.config.get("enable_idempotence")))

    def begin_transaction(self) -> None:
        """As the library's."""
        OWN_PRODUCER.begin_transaction(self)
        _transactions(self).begun()

    def send_offsets_to_transaction(self, offsets: Any, group_metadata: Any) -> None:
        """As the library's, with the group's name in this run."""
        with _transactions(self).sending(offsets_of(offsets)):
            OWN_PRODUCER.send_offsets_to_transaction(self, offsets, PROGRAM.group(group_metadata))

    def commit_transaction(self) -> None:
        """As the library's."""
        with _transactions(self).ending(committed=True):
            OWN_PRODUCER.commit_transaction(self)

    def abort_transaction(self) -> None:
        """As the library's."""
        with _transactions(self).ending(committed=False):
            OWN_PRODUCER.abort_transaction(self)


class Consumer:
    """Replaces functions of ``kafka.KafkaConsumer``."""

    config: Dict[str, Any]
    _coordinator: Any
    _subscription: Any
    _fencepost: PythonRecorder

    def __init__(self, *topics: Any, **configs: Any) -> None:
        group = configs.get("group_id", KNOWN["group_id"])
        ours, claim = (PROGRAM.reaching({}), None) if group is None else PROGRAM.consuming({"group.id": group})
        settings = reaching({**configs, "group_id": group}, client_arguments(ours))
        self._fencepost = tape = PythonRecorder(PROGRAM, claim, self, settings, identity, _consumed)
        OWN.__init__(self, **settings)  # type: ignore[misc]
        self._coordinator._fencepost = tape
        own_callback = self._coordinator.config["default_offset_commit_callback"]
        self._coordinator.config["default_offset_commit_callback"] = _answered(tape, own_callback)
        if topics:
            Consumer.subscribe(self, topics)

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """As the library's."""
        tape = self._fencepost
        topics, pattern = subscription(PROGRAM, topics, pattern)
        tape.asks(topics, pattern)
        OWN.subscribe(self, topics, pattern, _listener(tape, listener) if tape.on else listener)
        if tape.on:
            rebalances = getattr(self._coordinator, "_rebalance_protocol", None)  # before release 3: always eager
            protocol = "cooperative" if getattr(rebalances, "name", "") == "COOPERATIVE" else "eager"
            tape.subscribed(list(topics or ()), NAME, str(kafka.__version__), protocol, tape.plain())

    def poll(self, timeout_ms: Any = 0, max_records: Any = None, update_offsets: bool = True) -> Any:
        """As the library's, which calls this itself for iteration, without updating offsets."""
        tape = self._fencepost
        if not update_offsets or tape.off():
            return OWN.poll(self, timeout_ms, max_records, update_offsets)
        with tape.polling_for_records():
            found = OWN.poll(self, timeout_ms, max_records)
        tape.returned_lists(found)
        return found

    def _poll_once(self, *args: Any, **kwargs: Any) -> Any:
        if self._fencepost.on:
            self._fencepost.waits()
        return OWN._poll_once(self, *args, **kwargs)

    def __next__(self) -> Any:
        tape = self._fencepost
        if tape.off():
            return OWN.__next__(self)
        with tape.polling_for_records():
            record = OWN.__next__(self)
        tape.returned_records((record,))
        return record

    def commit(self, offsets: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As the library's."""
        if not self._fencepost.on:
            return OWN.commit(self, offsets, *args, **kwargs)
        with self._fencepost.commits(offsets):
            return OWN.commit(self, offsets, *args, **kwargs)

    def commit_async(self, offsets: Any = None, callback: Any = None) -> Any:
        """As the library's, which without a callback calls that of its coordinator."""
        tape = self._fencepost
        if not tape.on:
            return OWN.commit_async(self, offsets, callback)
        tape.committing(tape.meant(offsets), False, named=True)
        return OWN.commit_async(self, offsets, callback and _answered(tape, callback))

    def seek_to_beginning(self, *partitions: Any) -> None:
        """As the library's."""
        went = self._fencepost.goes_to_the_beginning(partitions)
        OWN.seek_to_beginning(self, *partitions)
        went()

    def seek_to_end(self, *partitions: Any) -> None:
        """As the library's."""
        self._fencepost.goes_to_the_end()
        OWN.seek_to_end(self, *partitions)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """As the library's."""
        self._fencepost.closing()
        OWN.close(self, *args, **kwargs)
        self._fencepost.closed()


class CoordinatorCalls:
    """Replaces functions of ``ConsumerCoordinator`` that commit synchronously, before a rebalance and at close. Its
    timer commits asynchronously and calls ``_answered``."""

    _fencepost: PythonRecorder

    def commit_offsets_sync(self, offsets: Any, *args: Any, **kwargs: Any) -> Any:
        """As the library's; since release 3 it calls ``_commit_offsets_sync_async``, which records the commit."""
        if hasattr(OWN_COORDINATOR, "_commit_offsets_sync_async"):
            return OWN_COORDINATOR.commit_offsets_sync(self, offsets, *args, **kwargs)
        with self._fencepost.commits_by_itself(offsets):
            return OWN_COORDINATOR.commit_offsets_sync(self, offsets, *args, **kwargs)

    async def _commit_offsets_sync_async(self, offsets: Any, *args: Any, **kwargs: Any) -> Any:
        with self._fencepost.commits_by_itself(offsets):
            return await OWN_COORDINATOR._commit_offsets_sync_async(self, offsets, *args, **kwargs)


def _consumed(consumer: Any) -> Mapping[Any, Any]:
    found: Mapping[Any, Any] = consumer._subscription.all_consumed_offsets()
    return found


def _answered(tape: PythonRecorder, own: Any) -> Any:
    """A callback for asynchronous commits that records and calls the program's or the library's own."""

    def answered(offsets: Mapping[Any, Any], answer: Any) -> None:
        tape.finished(offsets, answer)
        own(offsets, answer)

    return answered


def _listener(tape: PythonRecorder, own: Any) -> Any:
    """A rebalance listener that records and calls the program's own; it is async if that is."""
    if AsyncListener and isinstance(own, AsyncListener):
        return _asking(tape, own)
    if own is not None and not isinstance(own, kafka.ConsumerRebalanceListener):
        return own  # the library will refuse it

    class SyncListener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Set[Any]) -> None:
            with tape.called("assigned", assigned):
                if own is not None:
                    own.on_partitions_assigned(assigned)

        def on_partitions_revoked(self, revoked: Set[Any]) -> None:
            with tape.called("revoked", revoked):
                if own is not None:
                    own.on_partitions_revoked(revoked)

        def on_partitions_lost(self, lost: Set[Any]) -> None:
            with tape.called("lost", lost):
                if own is not None:
                    own.on_partitions_lost(lost)

        def __repr__(self) -> str:
            return repr(own)

    return SyncListener()


def _asking(tape: PythonRecorder, own: Any) -> Any:
    class CoroutineListener(AsyncListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Set[Any]) -> None:
            with tape.called("assigned", assigned):
                await own.on_partitions_assigned(assigned)

        async def on_partitions_revoked(self, revoked: Set[Any]) -> None:
            with tape.called("revoked", revoked):
                await own.on_partitions_revoked(revoked)

        async def on_partitions_lost(self, lost: Set[Any]) -> None:
            with tape.called("lost", lost):
                await own.on_partitions_lost(lost)

        def __repr__(self) -> str:
            return repr(own)

    return CoroutineListener()
