"""The adapter for kafka-python, from release 2.0.2 on: classic protocol.

Before release 3 the client works on the caller's thread alone. Since release 3 it has a thread of its own, which runs
the callbacks; a callback must not wait for the client. So polls run on another thread, and callbacks are handed to the
caller's.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Set, Tuple

import kafka as client
from kafka.errors import KafkaConfigurationError, KafkaError
from kafka.future import Future
from kafka.structs import OffsetAndMetadata, TopicPartition

from fencepost_member.adapters import ClientListener, Record, Tp
from fencepost_member.adapters.callback_bridge import CallbackBridge, report, report_error
from fencepost_member.adapters.errors import error_name
from fencepost_member.adapters.kafka_python_settings import KNOWN, client_arguments, known_settings
from fencepost_member.adapters.kafka_python_settings import try_settings as try_settings
from fencepost_member.config import ConfigError, MemberConfig

AsyncListener: Any = getattr(client, "AsyncConsumerRebalanceListener", None)  # since release 3, like the own thread
ASK_MS = 5000  # timeout of the first connection
NO_EPOCH = -1


def connect(config: MemberConfig, listener: ClientListener) -> KafkaPython:
    """A consumer for ``config``. Raises ConfigError when kafka-python refuses the settings."""
    return KafkaPython(config, listener)


class KafkaPython:
    """One consumer: ``Adapter``, ``Seeks``, ``Pauses``, ``Resubscribe``, ``CommitMetadata``, ``AsyncCommit`` and
    ``StartOffsets``.

    The library connects in its constructor: if no broker answers, polls report the error and try again.
    """

    def __init__(self, config: MemberConfig, listener: ClientListener) -> None:
        """Raises ConfigError when kafka-python refuses the settings."""
        self.version = str(client.__version__)
        self.settings = known_settings(config)
        self._arguments = client_arguments(self.settings)
        self._arguments["default_offset_commit_callback"] = self._auto_committed
        if "bootstrap_timeout_ms" in KNOWN:
            self._arguments["bootstrap_timeout_ms"] = ASK_MS
        self._most = int(self.settings.get("max.poll.records", KNOWN["max_poll_records"]))
        self._listener = listener
        self._topics: List[str] = []
        self._starts: Dict[Tp, int] = {}
        self._answers: List[Callable[[], None]] = []  # of asynchronous commits, to be delivered in the next poll
        self._handover, self._never = CallbackBridge(), threading.Event()
        self._worker = ThreadPoolExecutor(1) if AsyncListener else None
        self._consumer: Any = None
        with suppress(KafkaError):
            self._connect()

    def subscribe(self, topics: Sequence[str]) -> None:
        """See ``Adapter``. Fetches the topics' partitions now: a group leader that learns them later joins twice, and
        since release 2.1.0 it never applies the second assignment if the poll in which it joins ends before the group
        is ready.
        """
        self._topics = list(topics)
        if self._consumer:
            self._consumer.subscribe(self._topics, listener=_listener(self))
            with suppress(KafkaError):
                self.partitions(self._topics)

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``. A batch holds at most ``max.poll.records``."""
        until_s = time.monotonic() + timeout_s
        records: List[Record] = []
        try:
            if self._consumer is None:
                self._connect()
                self.subscribe(self._topics)
            found = self._call(self._consumer.poll, int(timeout_s * 1000), min(most, self._most))
            records = [
                (r.topic, r.partition, r.offset, r.key, r.value, r.headers) for part in found.values() for r in part
            ]
        except KafkaError as error:
            report_error(self._listener, error)
            self._never.wait(max(0.0, until_s - time.monotonic()))
        answers, self._answers = self._answers, []
        for answer in answers:
            answer()
        return records

    def commit(self, offsets: Mapping[Tp, int], metadata: str = "") -> Dict[Tp, str]:
        """See ``Adapter`` and ``CommitMetadata``. The library reports one error for all partitions."""
        try:
            if self._consumer is None:
                self._connect()
            self._consumer.commit(_with(offsets, metadata))
        except KafkaError as refused:
            return dict.fromkeys(offsets, error_name(refused))
        return dict.fromkeys(offsets, "")

    def commit_async(self, offsets: Mapping[Tp, int], answered: Callable[[Dict[Tp, str]], None]) -> None:
        """See ``AsyncCommit``. The library calls back on the thread that polls; since release 3 that is not the
        caller's."""

        def called(_: Any, answer: Any) -> None:
            self._answers.append(lambda: answered(dict.fromkeys(offsets, _error(answer))))

        try:
            if self._consumer is None:
                self._connect()
            self._consumer.commit_async(_with(offsets), called)
        except KafkaError as refused:
            answered(dict.fromkeys(offsets, error_name(refused)))

    def identity(self) -> Tuple[str, int]:
        """See ``Adapter``."""
        return identity(self._consumer)

    def close(self) -> None:
        """See ``Adapter``."""
        if self._consumer:
            self._call(self._consumer.close)
        if self._worker:
            self._worker.shutdown()

    def seek(self, tp: Tp, offset: int) -> None:
        """See ``Seeks``."""
        self._consumer.seek(TopicPartition(*tp), offset)

    def pause(self, tp: Tp) -> None:
        """See ``Pauses``."""
        self._consumer.pause(TopicPartition(*tp))

    def resume(self, tp: Tp) -> None:
        """See ``Pauses``."""
        self._consumer.resume(TopicPartition(*tp))

    def unsubscribe(self) -> None:
        """See ``Resubscribe``: the library runs no callback then, so this method does."""
        self._topics = []
        if self._consumer:
            report(self._listener, "revoked", self._consumer.assignment())
            self._consumer.unsubscribe()

    def partitions(self, topics: Iterable[str]) -> List[Tp]:
        """See ``StartOffsets``."""
        return sorted((name, p) for name in topics for p in self._consumer.partitions_for_topic(name) or ())

    def committed(self, partitions: Sequence[Tp]) -> Dict[Tp, int]:
        """See ``StartOffsets``."""
        with suppress(KafkaError):
            found = {tp: self._consumer.committed(TopicPartition(*tp)) for tp in partitions}
            return {tp: offset for tp, offset in found.items() if offset is not None}
        return {}

    def start_at(self, offsets: Mapping[Tp, int]) -> None:
        """See ``StartOffsets``."""
        self._starts.update(offsets)

    def called_back(self, what: str, partitions: Set[TopicPartition]) -> None:
        """On the caller's thread: the library called back. It has already applied the change."""
        report(self._listener, what, partitions, self._start)

    async def called_back_async(self, what: str, partitions: Set[TopicPartition]) -> None:
        """On the library's thread: have the caller's thread run ``called_back``, and wait until it has."""
        done, loop = Future(), self._consumer._net
        ran = self._handover.submit(lambda: self.called_back(what, partitions))
        ran.add_done_callback(lambda _: loop.call_soon_threadsafe(lambda: done.success(None)))
        await done

    def _connect(self) -> None:
        try:
            self._consumer = client.KafkaConsumer(**self._arguments)
        except (KafkaConfigurationError, AssertionError, AttributeError, TypeError, ValueError) as error:
            raise ConfigError("kafka-python refuses the client settings: %s" % error) from error

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the library that may run callbacks."""
        if self._worker is None:
            return function(*arguments)
        called = self._worker.submit(function, *arguments)
        self._handover.wait(called)
        return called.result()

    def _start(self) -> None:
        starts, self._starts = self._starts, {}
        for tp, offset in starts.items():
            self.seek(tp, offset)

    def _auto_committed(self, offsets: Mapping[TopicPartition, Any], answer: Any) -> None:
        """The library's callback of an auto-commit, from inside a poll, on the thread that polls."""
        committed = {(tp.topic, tp.partition): offset.offset for tp, offset in offsets.items()}
        if committed:
            self._answers.append(lambda: self._listener.committed(committed, dict.fromkeys(committed, _error(answer))))


def _with(offsets: Mapping[Tp, int], metadata: str = "") -> Dict[TopicPartition, OffsetAndMetadata]:
    """Offsets in the library's form."""
    fields = len(OffsetAndMetadata._fields)
    return {
        TopicPartition(*tp): OffsetAndMetadata(*(offset, metadata, NO_EPOCH)[:fields]) for tp, offset in offsets.items()
    }


def _error(answer: Any) -> str:
    """The error name of the value that the library calls back with; empty for success."""
    return error_name(answer) if isinstance(answer, BaseException) else ""


def identity(consumer: Any) -> Tuple[str, int]:
    """(member id, generation) of a consumer of the library, or of None."""
    coordinator = getattr(consumer, "_coordinator", None)  # releases before 3 have no public attribute for it
    generation = coordinator._generation if coordinator else None
    return (generation.member_id or "", generation.generation_id) if generation else ("", -1)


def _listener(adapter: KafkaPython) -> Any:
    """The rebalance listener for the library: with coroutines since release 3."""

    class SyncListener(client.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Set[TopicPartition]) -> None:
            adapter.called_back("assigned", assigned)

        def on_partitions_revoked(self, revoked: Set[TopicPartition]) -> None:
            adapter.called_back("revoked", revoked)

    class CoroutineListener(AsyncListener or object):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Set[TopicPartition]) -> None:
            await adapter.called_back_async("assigned", assigned)

        async def on_partitions_revoked(self, revoked: Set[TopicPartition]) -> None:
            await adapter.called_back_async("revoked", revoked)

        async def on_partitions_lost(self, lost: Set[TopicPartition]) -> None:
            await adapter.called_back_async("lost", lost)

    return CoroutineListener() if AsyncListener else SyncListener()
