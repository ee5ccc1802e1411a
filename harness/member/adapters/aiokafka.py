"""The adapter for aiokafka, from release 0.9 on: classic protocol, eager.

Its event loop always runs on a thread of its own: calls are handed to that thread, and callbacks to the caller's.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Callable, Coroutine, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

import aiokafka as client
from aiokafka.abc import AbstractTokenProvider
from aiokafka.coordinator.assignors import range as by_range
from aiokafka.coordinator.assignors import roundrobin
from aiokafka.coordinator.assignors.sticky import sticky_assignor
from aiokafka.errors import KafkaError

from fencepost_member.adapters import ClientListener, Record, Tp
from fencepost_member.adapters.callback_bridge import CallbackBridge, report, report_error
from fencepost_member.adapters.errors import error_name
from fencepost_member.adapters.settings import arguments, connecting, refuse_unknown, settings_of
from fencepost_member.config import ConfigError, MemberConfig

ASSIGNORS = {
    "range": by_range.RangePartitionAssignor,
    "roundrobin": roundrobin.RoundRobinPartitionAssignor,
    "sticky": sticky_assignor.StickyPartitionAssignor,
}
NAME = "aiokafka"
GRACE_S = 0.05  # added to a poll's timeout, for the library to return


def client_arguments(settings: Mapping[str, Any]) -> Dict[str, Any]:
    """Settings by Kafka's names as keyword arguments of the client. Raises ConfigError, and OSError for TLS files."""
    return connecting(arguments(NAME, settings, ASSIGNORS), AbstractTokenProvider)


def try_settings(config: MemberConfig) -> None:
    """See ``adapters``. A consumer can only be created inside an event loop, so the names of settings are compared."""
    given = client_arguments(settings_of(config))
    refuse_unknown(config.client, given, inspect.signature(client.AIOKafkaConsumer.__init__).parameters)


def connect(config: MemberConfig, listener: ClientListener) -> AioKafka:
    """A consumer for ``config``. Raises ConfigError when aiokafka refuses the settings."""
    return AioKafka(config, listener)


class AioKafka:
    """One consumer of aiokafka; satisfies ``Adapter``, ``Seeks``, ``Pauses``, ``CommitMetadata``, ``AsyncCommit`` and
    ``StartOffsets``.

    The library reports no auto-commits, calls no callback at close, and reports lost partitions as revoked. If no
    broker answers at first, polls report the error and try again.
    """

    def __init__(self, config: MemberConfig, listener: ClientListener) -> None:
        """Raises ConfigError when aiokafka refuses the settings."""
        self.version = str(client.__version__)
        self.settings = settings_of(config)
        self._arguments = client_arguments(self.settings)
        self._most = int(self.settings.get("max.poll.records", sys.maxsize))
        self._listener = listener
        self._topics: List[str] = []
        self._starts: Dict[Tp, int] = {}
        self._held: Set[Any] = set()  # paused until the assigned callback ran on the caller's thread
        self._handover, self._never = CallbackBridge(), threading.Event()
        self._loop = asyncio.new_event_loop()
        self._turns: Optional[asyncio.Lock] = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._consumer: Any = None
        self._read: Optional[Future[Any]] = None
        with suppress(KafkaError):
            self._connect()

    def subscribe(self, topics: Sequence[str]) -> None:
        """See ``Adapter``."""
        self._topics = list(topics)
        if self._consumer:
            self._do(lambda: self._consumer.subscribe(self._topics, listener=_listener(self)))

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``. In a rebalance the library ignores the timeout; later polls wait for the same call."""
        until_s = time.monotonic() + timeout_s
        try:
            if not self._consumer:
                self._connect()
                self.subscribe(self._topics)
            if self._read is None:
                asked = self._consumer.getmany(timeout_ms=int(timeout_s * 1000), max_records=min(most, self._most))
                self._read = Future()
                self._handover.follow(self._read)
                asyncio.run_coroutine_threadsafe(answered_at_once(asked, self._read), self._loop)
            if self._handover.wait(self._read, timeout_s + GRACE_S):
                read, self._read = self._read, None
                return [
                    (r.topic, r.partition, r.offset, r.key, r.value, r.headers)
                    for part in read.result().values()
                    for r in part
                ]
        except KafkaError as error:
            report_error(self._listener, error)
            self._never.wait(max(0.0, until_s - time.monotonic()))
        return []

    def commit(self, offsets: Mapping[Tp, int], metadata: str = "") -> Dict[Tp, str]:
        """See ``Adapter`` and ``CommitMetadata``. One error for all; the library commits only what it is assigned."""
        return self._run(self._answer(offsets, metadata))  # type: ignore[no-any-return]

    def commit_async(self, offsets: Mapping[Tp, int], answered: Callable[[Dict[Tp, str]], None]) -> None:
        """See ``AsyncCommit``: the commit is an asyncio task, as it is in programs on asyncio."""
        asked = asyncio.run_coroutine_threadsafe(self._answer(offsets), self._loop)
        asked.add_done_callback(lambda done: self._handover.submit(lambda: answered(done.result())))

    def identity(self) -> Tuple[str, int]:
        """See ``Adapter``."""
        return identity(self._consumer)

    def close(self) -> None:
        """See ``Adapter``."""
        if self._consumer:
            self._handover.wait(asyncio.run_coroutine_threadsafe(self._consumer.stop(), self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def seek(self, tp: Tp, offset: int) -> None:
        """See ``Seeks``."""
        self._do(lambda: self._consumer.seek(client.TopicPartition(*tp), offset))

    def pause(self, tp: Tp) -> None:
        """See ``Pauses``."""
        self._held.discard(client.TopicPartition(*tp))
        self._do(lambda: self._consumer.pause(client.TopicPartition(*tp)))

    def resume(self, tp: Tp) -> None:
        """See ``Pauses``."""
        self._do(lambda: self._consumer.resume(client.TopicPartition(*tp)))

    def unsubscribe(self) -> None:
        """See ``Resubscribe``: the library runs no callback then, so this method does."""
        self._topics = []
        if self._consumer:
            report(self._listener, "revoked", self._consumer.assignment())
            self._do(self._consumer.unsubscribe)

    def partitions(self, topics: Iterable[str]) -> List[Tp]:
        """See ``StartOffsets``."""
        return sorted((name, p) for name in topics for p in self._consumer.partitions_for_topic(name) or ())

    def committed(self, partitions: Sequence[Tp]) -> Dict[Tp, int]:
        """See ``StartOffsets``."""
        with suppress(KafkaError):
            found = {tp: self._run(self._consumer.committed(client.TopicPartition(*tp))) for tp in partitions}
            return {tp: offset for tp, offset in found.items() if offset is not None}
        return {}

    def start_at(self, offsets: Mapping[Tp, int]) -> None:
        """See ``StartOffsets``."""
        self._starts.update(offsets)

    async def called_back(self, what: str, partitions: Set[Any]) -> None:
        """On the event loop: run the member's callback on the caller's thread. The library has already applied it."""
        ran = self._handover.submit(lambda: report(self._listener, what, partitions, self._start))
        await asyncio.wrap_future(ran)

    async def assigned_back(self, partitions: Set[Any]) -> None:
        """On the event loop: partitions were assigned. They stay paused until the assigned callback has run on the
        caller's thread, because the callback may set where they start."""
        self._held = set(partitions)
        self._consumer.pause(*partitions)
        await self.called_back("assigned", partitions)
        self._consumer.resume(*self._held & self._consumer.assignment())

    async def _answer(self, offsets: Mapping[Tp, int], metadata: str = "") -> Dict[Tp, str]:
        """On the event loop: commit and return the answer, one commit at a time. The library retries a refused commit,
        so without the lock an older commit could arrive last."""
        error = ""
        self._turns = self._turns or asyncio.Lock()  # created here: in Python 3.8 a lock belongs to the running loop
        async with self._turns:
            try:
                if not self._consumer:
                    await self._connected()
                await self._consumer.commit({client.TopicPartition(*tp): (at, metadata) for tp, at in offsets.items()})
            except KafkaError as refused:
                error = error_name(refused)
        return dict.fromkeys(offsets, error)

    def _connect(self) -> None:
        self._run(self._connected())

    async def _connected(self) -> None:
        try:
            consumer = client.AIOKafkaConsumer(**self._arguments)
        except (AssertionError, TypeError, ValueError) as error:
            raise ConfigError("aiokafka refuses the client settings: %s" % error) from error
        try:
            await consumer.start()
        except KafkaError:
            await consumer.stop()
            raise
        self._consumer = consumer

    def _run(self, question: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the event loop and wait for its result; no callback may run in it."""
        return asyncio.run_coroutine_threadsafe(question, self._loop).result()

    def _do(self, act: Callable[[], Any]) -> None:
        async def acted() -> None:
            act()

        self._run(acted())

    def _start(self) -> None:
        starts, self._starts = self._starts, {}
        for tp, offset in starts.items():
            self.seek(tp, offset)


async def answered_at_once(question: Coroutine[Any, Any, Any], answer: Future[Any]) -> None:
    """On the event loop: set the answer in the same step in which the coroutine ends. The records of a read then
    precede the library's next callback, as they do for programs on the loop; asyncio itself would hand them to another
    thread one step later."""
    try:
        answer.set_result(await question)
    except Exception as error:
        answer.set_exception(error)


def identity(consumer: Any) -> Tuple[str, int]:
    """(member id, generation) of a consumer of the library, or of None."""
    coordinator = getattr(consumer, "_coordinator", None)  # no public attribute has it
    return (coordinator.member_id, coordinator.generation) if coordinator else ("", -1)


def _listener(adapter: AioKafka) -> Any:
    """The rebalance listener for the library."""

    class CoroutineListener(client.ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Set[Any]) -> None:
            await adapter.assigned_back(assigned)

        async def on_partitions_revoked(self, revoked: Set[Any]) -> None:
            await adapter.called_back("revoked", revoked)

    return CoroutineListener()
