"""A user's own program on aiokafka as a member: what it notices of that (nothing), and what is said of it."""

from __future__ import annotations

import pytest
from unit.member.test_instrument import NOBODY, WITHIN_S, Started, started  # noqa: F401 (a fixture)

CLIENT = {"client": "aiokafka"}
HEAD = """
import asyncio, os, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
CONFIG = {"bootstrap_servers": "kafka.shop.internal:9092", "group_id": "shop"}

async def main():
"""
RUN = "\nasyncio.run(main())\n"
SUBSCRIBED = "consumer = AIOKafkaConsumer('orders', **CONFIG)"


def program(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines) + RUN


def test_the_program_finds_the_run_whatever_its_configuration_says(started: Started) -> None:  # noqa: F811
    mine = "CONFIG.update(client_id='shop-1', security_protocol='SSL', sasl_plain_password='x')"
    text = program(mine, SUBSCRIBED, "print(consumer._client.hosts, consumer._group_id)", "await consumer.stop()")
    life = started.life(text, **CLIENT)
    assert life.wait_ended(WITHIN_S) == 0
    assert "[('127.0.0.1', 1" in life.log.read_text()
    (reported,) = started.events("started")
    assert reported["detail"]["config"] == {
        "bootstrap.servers": NOBODY,
        "group.id": "g-1",
        "client.id": "member-0.1",
        "session.timeout.ms": 7000,
    }
    assert {name: reported["detail"][name] for name in ("client", "protocol", "processed")} == {
        "client": "aiokafka",
        "protocol": "eager",
        "processed": "next-poll",
    }
    assert [event["detail"] for event in started.events("closed")] == [{"polls": 0, "records": 0}]
    assert started.events("unrecorded") == []


@pytest.mark.parametrize(
    "made",
    [
        (SUBSCRIBED,),
        ("consumer = AIOKafkaConsumer(**CONFIG)", "consumer.subscribe(['orders'])"),
        ("consumer = AIOKafkaConsumer(**CONFIG)", "consumer.subscribe(pattern='ord.*')"),
        ("class Own(AIOKafkaConsumer): pass", "consumer = Own('orders', **CONFIG)"),
        ("import aiokafka.consumer.consumer as c", "consumer = c.AIOKafkaConsumer('orders', **CONFIG)"),
    ],
)
def test_every_way_to_a_consumer_is_recorded(started: Started, made: tuple[str, ...]) -> None:  # noqa: F811
    assert started.life(program(*made, "await consumer.stop()"), **CLIENT).wait_ended(WITHIN_S) == 0
    assert len(started.events("started")) == len(started.events("closed")) == 1


def test_every_consumer_of_the_group_is_a_member_of_its_own(started: Started) -> None:  # noqa: F811
    more = ("for _ in range(2):", "    await AIOKafkaConsumer('orders', **CONFIG).stop()", "await consumer.stop()")
    assert started.life(program(SUBSCRIBED, *more), **CLIENT).wait_ended(WITHIN_S) == 0
    assert started.events("unrecorded") == []
    reported = {event["actor"]: event["detail"]["config"]["client.id"] for event in started.events("started")}
    assert list(reported) == list(reported.values()) == ["member-0.1", "member-0b.1-2", "member-0b.1"]
    assert {event["actor"] for event in started.events("closed")} == set(reported)


def test_records_have_the_headers_of_the_program_alone(started: Started) -> None:  # noqa: F811
    text = program(
        "from fencepost_member.instrument.aiokafka import _without_ours",
        "from types import SimpleNamespace",
        "record = SimpleNamespace(headers=(('shop', b'1'), ('fencepost', bytes([160]))))",
        "_without_ours([record])",
        "print(record.headers)",
    )
    life = started.life(text, **CLIENT)
    assert life.wait_ended(WITHIN_S) == 0
    assert "(('shop', b'1'),)" in life.log.read_text()


def test_another_client_of_the_program_finds_the_run_and_is_not_recorded(started: Started) -> None:  # noqa: F811
    text = program(
        "from aiokafka.admin import AIOKafkaAdminClient",
        "for kind in (AIOKafkaProducer, AIOKafkaAdminClient):",
        "    client = kind(bootstrap_servers='kafka.shop.internal:9092')",
        "    try: await client.start()",
        "    except Exception as error: print(error)",
        "    await (client.stop() if kind is AIOKafkaProducer else client.close())",
        "audit = AIOKafkaConsumer('payments', **{**CONFIG, 'group_id': 'other'})",
        "await audit.stop()",
    )
    life = started.life(text, **CLIENT)
    assert life.wait_ended(WITHIN_S) == 0
    said = life.log.read_text()
    assert said.count(NOBODY) >= 2
    assert "shop.internal" not in said
    assert started.events("started") == started.events("unrecorded") == []
    reported = [(e["actor"], e["detail"]) for e in started.events("producing")]
    assert reported == [("member-0.1", {"client": "aiokafka", "idempotent": False})]


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("raise ValueError('no such order')", 1),
        ("print('done'); sys.exit(7)", 7),
        ("await consumer.stop(); await consumer.getone()", 1),
        ("await consumer.commit({'orders': 7})", 1),
        ("consumer.subscribe(['orders'], listener=5)", 1),
        ("consumer.subscribe(5)", 1),
        ("AIOKafkaConsumer(no_such_setting=1)", 1),
        ("await consumer.stop(); print(type(consumer), asyncio.iscoroutinefunction(AIOKafkaConsumer.getone))", 0),
    ],
)
def test_what_the_program_says_and_how_it_ends_is_as_without_us(
    started: Started,  # noqa: F811
    end: str,
    code: int,
) -> None:
    text = program(SUBSCRIBED, end)
    recorded, alone = started.says(text, text, code, **CLIENT)
    assert _comparable(recorded) == _comparable(alone)


def _comparable(lines: list[str]) -> list[str]:
    """Without what differs from process to process: addresses, and where a warning was."""
    return [line for line in lines if " at 0x" not in line and "Unclosed" not in line]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (("AIOKafkaConsumer('orders', **{**CONFIG, 'group_id': 'x'})",), "in another group than the first one"),
        (("AIOKafkaConsumer('orders', **{**CONFIG, 'group_id': None})",), "a consumer without a group"),
        (("AIOKafkaConsumer(**CONFIG).assign([TopicPartition('orders', 0)])",), "outside the group"),
        (("try: await consumer.seek_to_end()", "except AssertionError: pass"), "moves to the end"),
        (("if os.fork() == 0:", "    try: await consumer.getone()", "    finally: os._exit(0)", "os.wait()"), "forked"),
    ],
)
def test_what_no_history_can_tell_is_said(started: Started, lines: tuple[str, ...], sentence: str) -> None:  # noqa: F811
    assert started.life(program(SUBSCRIBED, *lines, "os._exit(0)"), **CLIENT).wait_ended(WITHIN_S) == 0
    (reported,) = started.events("unrecorded")
    assert sentence in reported["detail"]["text"]
