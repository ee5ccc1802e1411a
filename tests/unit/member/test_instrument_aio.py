"""A user's own program on confluent-kafka's asyncio consumer, which polls on a pool of threads, as a member."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from unit.member.test_instrument import WITHIN_S, Started, started  # noqa: F401 (a fixture)

from fencepost.evidence.sealing.segment_reader import read_segments
from fencepost_member.recording.segments import DELIVERED

# A pool of which each call has another thread.
HEAD = """
import asyncio, concurrent.futures, sys, threading
from confluent_kafka import Producer
from confluent_kafka.aio import AIOConsumer

class Threads(concurrent.futures.Executor):
    begun = threading.Event()
    def submit(self, call, *args, **kwargs):
        future = concurrent.futures.Future()
        def run():
            future.set_running_or_notify_cancel()
            self.begun.set()
            try: future.set_result(call(*args, **kwargs))
            except BaseException as error: future.set_exception(error)
        threading.Thread(target=run, daemon=True).start()
        return future

async def told(consumer, partitions):
    print(len(await consumer.assignment()), type(consumer).__name__, flush=True)

def produce(count):
    producer = Producer({"bootstrap.servers": "kafka.shop.internal:9092"})
    for _ in range(count): producer.produce("orders", b"x", partition=0)
    producer.flush()

async def main():
    consumer = AIOConsumer(
        {"bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "enable.auto.commit": False},
        executor=Threads(),
    )
    await consumer.subscribe(["orders"], on_assign=told, on_revoke=told)
"""
RUN = "\nasyncio.run(main())\n"


@pytest.fixture
def bootstrap() -> str:
    """Of librdkafka's own mock brokers, which have one record."""
    mock = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    broker = next(iter(mock.list_topics(timeout=WITHIN_S).brokers.values()))
    mock.produce("orders", b"x", partition=0)
    assert mock.flush(WITHIN_S) == 0
    KEPT.append(mock)
    return f"{broker.host}:{broker.port}"


KEPT: list[Producer] = []  # brokers live as long as these


def lived(started: Started, bootstrap: str, *lines: str, code: int = 0) -> list[int]:  # noqa: F811
    """The offsets that the program was given, in the order in which they are recorded."""
    text = HEAD + "".join(f"    {line}\n" for line in lines) + RUN
    config = {"auto.offset.reset": "earliest"}
    topics = {"orders": {str(n): n for n in range(4)}}
    life = started.life(text, bootstrap=bootstrap, client_config=config, topics=topics)
    assert life.wait_ended(WITHIN_S) == code, life.log_end()
    assert started.events("unrecorded") == []
    segments = [s for s in read_segments(started.history / "segments")[0] if s.header.layout is DELIVERED]
    assert len(segments) == 1
    return [int(offset) for offset in segments[0].records["offset"]]


def test_all_threads_of_its_pool_record_in_one_place(started: Started, bootstrap: str) -> None:  # noqa: F811
    lines = ("produce(29)", "for _ in range(30): assert await consumer.poll(60)", "await consumer.close()")
    assert lived(started, bootstrap, *lines) == list(range(30))
    assert [event["detail"] for event in started.events("closed")] == [{"polls": 30, "records": 30}]


def test_its_callbacks_are_coroutines_that_use_it_on_other_threads(started: Started, bootstrap: str) -> None:  # noqa: F811
    lines = ("while not await consumer.consume(5, 1): pass", "await consumer.close()")
    assert lived(started, bootstrap, *lines)
    (said,) = {path.read_text() for path in started.folder.glob("member-0.1*") if path.is_file()} or {""}
    assert "4 AIOConsumer" in said
    ended = [event["kind"] for event in started.events("assigned") + started.events("revoked") if event["end_ns"]]
    assert ended == ["assigned", "revoked"]


def test_what_a_poll_brings_that_was_given_up_was_never_delivered(started: Started, bootstrap: str) -> None:  # noqa: F811
    lines = (
        "assert await consumer.poll(60)",
        "Threads.begun.clear()",
        "given_up = asyncio.ensure_future(consumer.poll(60))",
        "await asyncio.to_thread(Threads.begun.wait)",
        "given_up.cancel()",
        "produce(2)",
        "assert (await consumer.poll(60)).offset() == 2",
        "await consumer.close()",
    )
    assert lived(started, bootstrap, *lines) == [0, 2]


@pytest.mark.parametrize(("end", "done"), [("pass", 1), ("raise ValueError('no such order')", 0)])
def test_who_closes_it_because_of_an_error_is_not_done_with_what_is_in_hand(
    started: Started,  # noqa: F811
    bootstrap: str,
    end: str,
    done: int,
) -> None:
    lines = ("assert await consumer.poll(60)", "try:", f"    {end}", "finally:", "    await consumer.close()")
    assert lived(started, bootstrap, *lines, code=1 - done) == [0]
    assert [event["detail"] for event in started.events("closed")] == [{"polls": 1, "records": done}]
