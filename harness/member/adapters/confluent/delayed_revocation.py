"""A member of confluent-kafka that continues to poll while it still processes records of partitions to be revoked.

KIP-983 proposes this for consumers: a revocation that begins in one poll is completed in a later one. librdkafka
fetches nothing while its callback waits, so this adapter has two consumers. The first is in the group, on a thread of
its own, where callbacks may wait; all its partitions are paused. The second fetches these partitions without a group,
on the thread of the member's loop, which answers the callbacks between its polls.

The library lets only one thread at a time call a consumer, and a running callback counts as a call. So the group's
thread makes the calls that the loop needs of the first consumer, also while it is inside a callback. As that thread
polls, the group does not notice when the loop makes no progress.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Callable, List, Optional, Sequence

import confluent_kafka as client

from fencepost_member.adapters import DelayRevocation, Record
from fencepost_member.adapters.callback_bridge import CallbackBridge
from fencepost_member.adapters.confluent.consumer import CLASSIC_ONLY, ConfluentKafka, consumer_of
from fencepost_member.adapters.confluent.values import tps_of
from fencepost_member.config import MemberConfig

SERVE_S = 0.005  # the longest time that a call of the loop waits for the group's thread
OF_THE_GROUP = ("group.protocol", "group.instance.id", "max.poll.interval.ms", *CLASSIC_ONLY)


class _Elsewhere:
    """A consumer whose methods run on another thread: calls are queued here, and ``do`` makes them there."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._submit, getattr(self._consumer, name))

    def do(self, within_s: float) -> None:
        """Make the first queued call; wait for one for at most ``within_s``."""
        with suppress(queue.Empty):
            self._asked.get(timeout=within_s)()

    def _submit(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        answer: Future[Any] = Future()

        def run() -> None:
            try:
                answer.set_result(method(*arguments, **named))
            except BaseException as error:  # the caller's thread raises it
                answer.set_exception(error)

        self._asked.put(run)
        return answer.result()


class DelayedRevocation(ConfluentKafka):
    """Two consumers; satisfies what ``ConfluentKafka`` does, for incremental protocols."""

    _listener: DelayRevocation

    def __init__(self, config: MemberConfig, listener: Any) -> None:
        """``listener`` satisfies ``DelayRevocation``. Raises ConfigError when librdkafka refuses the settings."""
        self._handover, self._closing = CallbackBridge(), threading.Event()
        self._put_off: List[Callable[[], bool]] = []  # delayed revocations; each returns whether it is completed
        self._thread: Optional[threading.Thread] = None
        self._served: Future[None] = Future()
        super().__init__(config, listener)
        self._group, self._consumer = self._consumer, _Elsewhere(self._consumer)
        settings = {name: value for name, value in self.settings.items() if name not in OF_THE_GROUP}
        self._fetching = consumer_of({**settings, "error_cb": self._error})

    def subscribe(self, topics: Sequence[str]) -> None:
        """See ``Adapter``."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True)  # must not delay the exit after a crash
            self._thread.start()
        super().subscribe(topics)

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        self._answer()
        return super().poll(most, timeout_s)

    def close(self) -> None:
        """See ``Adapter``. Delayed revocations are completed at once."""
        self._closing.set()
        if self._thread:
            self._answer()
            self._handover.wait(self._served)
        else:
            self._group.close()
        self._fetching.close()

    def _answer(self) -> None:
        """Run the callbacks that the group's thread queued, and complete the delayed revocations that can be."""
        self._handover.wait(Future(), 0)
        self._put_off = [completed for completed in self._put_off if not completed()]

    def _serve(self) -> None:
        try:
            while not self._closing.is_set():
                self._consumer.do(0)
                self._group.poll(SERVE_S)
            self._group.close()
        finally:
            self._served.set_result(None)

    def _assigned(self, consumer: client.Consumer, partitions: List[client.TopicPartition]) -> None:
        fetch = self._guarded(lambda: self._fetching.incremental_assign(self._placed(partitions)))
        self._until(self._handover.submit(lambda: self._listener.assigned(tps_of(partitions), fetch)))
        self._guarded(lambda: consumer.incremental_assign(partitions))()
        self._guarded(lambda: consumer.pause(partitions))()

    def _revoked(self, consumer: client.Consumer, partitions: List[client.TopicPartition]) -> None:
        given_up: Future[None] = Future()

        def completed() -> bool:
            if not self._closing.is_set() and not self._listener.revoking(tps_of(partitions)):
                return False
            try:
                self._listener.revoked(tps_of(partitions), self._no_longer(partitions))
            finally:
                given_up.set_result(None)
            return True

        self._handover.submit(lambda: self._put_off.append(completed) if not completed() else None)
        self._until(given_up)
        self._guarded(lambda: self._unassign(consumer, partitions))()

    def _lost(self, consumer: client.Consumer, partitions: List[client.TopicPartition]) -> None:
        self._until(self._handover.submit(lambda: self._listener.lost(tps_of(partitions), self._no_longer(partitions))))
        self._guarded(lambda: self._unassign(consumer, partitions))()

    def _until(self, answered: Future[None]) -> None:
        """In a callback: make the calls that the loop queues until the loop has answered."""
        while not answered.done():
            self._consumer.do(SERVE_S)

    def _no_longer(self, partitions: List[client.TopicPartition]) -> Callable[[], None]:
        return self._guarded(lambda: self._fetching.incremental_unassign(partitions))

    def _committed(self, error: Optional[client.KafkaError], partitions: List[client.TopicPartition]) -> None:
        self._handover.submit(lambda: super(DelayedRevocation, self)._committed(error, partitions))

    def _error(self, error: client.KafkaError) -> None:
        """On either thread: the loop reports the error in its next poll."""
        self._handover.submit(lambda: super(DelayedRevocation, self)._error(error))
