"""A user's own program on kafka-python as a member: what it notices of that (nothing), and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from unit.member.test_instrument import NOBODY, WITHIN_S, Started, started  # noqa: F401 (a fixture)

from fencepost.errors import MemberError

CLIENT = {"client": "kafka-python"}
CONSUMER = """
import os, sys
from kafka import KafkaConsumer, TopicPartition
CONFIG = {"bootstrap_servers": "kafka.shop.internal:9092", "group_id": "shop", "api_version": (2, 6)}
"""
SUBSCRIBED = f"{CONSUMER}consumer = KafkaConsumer('orders', **CONFIG)\n"
FORKED = (  # the library's own thread is not in the child, so a poll there does not end by itself
    "pid = os.fork()\nif pid == 0:\n    __import__('signal').alarm(3)\n    consumer.poll(0)\nos.waitpid(pid, 0)"
)
CLOSED = "consumer.close()\n"


def test_the_program_finds_the_run_whatever_its_configuration_says(started: Started) -> None:  # noqa: F811
    secret = "CONFIG.update(client_id='shop-1', security_protocol='SSL', sasl_plain_password='x')\n"
    text = SUBSCRIBED.replace("consumer =", secret + "consumer =") + CLOSED
    assert started.life(text, **CLIENT).wait_ended(WITHIN_S) == 0
    (reported,) = started.events("started")
    assert reported["detail"]["config"] == {
        "bootstrap.servers": NOBODY,
        "group.id": "g-1",
        "client.id": "member-0.1",
        "session.timeout.ms": 7000,
        "api.version": "2,6",
    }
    assert {name: reported["detail"][name] for name in ("client", "protocol", "processed")} == {
        "client": "kafka-python",
        "protocol": "eager",
        "processed": "next-poll",
    }
    assert [event["detail"] for event in started.events("closed")] == [{"polls": 0, "records": 0}]
    assert started.events("unrecorded") == []


@pytest.mark.parametrize(("subscribes", "topics"), [("['orders']", ["orders"]), ("pattern='ord.*'", ["^ord.*"])])
def test_a_program_that_is_learned_reports_what_it_subscribes_to(
    started: Started,  # noqa: F811
    subscribes: str,
    topics: list[str],
) -> None:
    text = f"{CONSUMER}consumer = KafkaConsumer(**CONFIG)\nconsumer.subscribe({subscribes})\n{CLOSED}"
    assert started.life(text, topics={}, learning=True, **CLIENT).wait_ended(WITHIN_S) == 0
    (asked,) = started.events("subscribed")
    assert asked["detail"] == {"topics": topics, "group": "shop"}


@pytest.mark.parametrize(
    "made",
    [
        "consumer = KafkaConsumer('orders', **CONFIG)",
        "consumer = KafkaConsumer(**CONFIG); consumer.subscribe(['orders'])",
        "consumer = KafkaConsumer(**CONFIG); consumer.subscribe(pattern='ord.*')",
        "import kafka.consumer.group as g; consumer = g.KafkaConsumer('orders', **CONFIG)",
        "class Own(KafkaConsumer):\n    def poll(self, *a, **k): return super().poll(*a, **k)\n"
        "consumer = Own('orders', **CONFIG)",
    ],
)
def test_every_way_to_a_consumer_is_recorded(started: Started, made: str) -> None:  # noqa: F811
    text = f"{CONSUMER}{made}\nconsumer.poll(10)\nconsumer.close()\n"
    assert started.life(text, **CLIENT).wait_ended(WITHIN_S) == 0
    assert len(started.events("started")) == len(started.events("closed")) == 1
    assert started.events("closed")[0]["detail"]["polls"] == 1


def test_every_consumer_of_the_group_is_a_member_of_its_own(started: Started) -> None:  # noqa: F811
    more = "for _ in range(2): KafkaConsumer('orders', **CONFIG).close()\n"
    forks = f"if os.fork() == 0:\n    KafkaConsumer('orders', **CONFIG).close()\n    os._exit(0)\nos.wait()\n{CLOSED}"
    assert started.life(SUBSCRIBED + more + forks, **CLIENT).wait_ended(WITHIN_S) == 0
    assert started.events("unrecorded") == []
    reported = {event["actor"]: event["detail"]["config"]["client.id"] for event in started.events("started")}
    assert list(reported) == list(reported.values()) == ["member-0.1", "member-0b.1-2", "member-0b.1-3", "member-0b.1"]
    assert {event["actor"] for event in started.events("closed")} == set(reported)


@pytest.mark.slow
def test_another_client_of_the_program_finds_the_run_and_is_not_recorded(started: Started) -> None:  # noqa: F811
    others = (
        "from kafka import KafkaProducer\nfrom kafka.admin import KafkaAdminClient\n"
        "audit = KafkaConsumer('payments', **{**CONFIG, 'group_id': 'other'})\n"
        "producer = KafkaProducer(bootstrap_servers='kafka.shop.internal:9092', api_version=(2, 6))\n"
        "print(audit.config['bootstrap_servers'], producer.config['bootstrap_servers'])\n"
        "try: KafkaAdminClient(bootstrap_servers='kafka.shop.internal:9092')\nexcept Exception as e: print(e)\n"
        "audit.close(); producer.close(0)\n"
    )
    life = started.life(CONSUMER + others, **CLIENT)
    assert life.wait_ended(WITHIN_S) == 0
    said = life.log.read_text()
    assert f"{NOBODY} {NOBODY}" in said
    assert "shop.internal" not in said
    assert started.events("started") == started.events("unrecorded") == []
    reported = [(e["actor"], e["detail"]) for e in started.events("producing")]
    assert reported == [("member-0.1", {"client": "kafka-python", "idempotent": True})]


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("raise ValueError('no such order')", 1),
        ("print('done'); sys.exit(7)", 7),
        ("consumer.close(); consumer.poll(0)", 1),
        ("consumer.close(); next(consumer)", 1),
        ("consumer.seek(TopicPartition('orders', 0), 5)", 1),
        ("consumer.subscribe(['orders'], listener=5)", 1),
        ("consumer.commit({'orders': 7})", 1),
        ("KafkaConsumer(no_such_setting=1)", 1),
        ("consumer.subscribe(5)", 1),
        ("consumer.close(); print(type(consumer), KafkaConsumer.poll.__name__, KafkaConsumer.__mro__)", 0),
    ],
)
def test_what_the_program_says_and_how_it_ends_is_as_without_us(
    started: Started,  # noqa: F811
    end: str,
    code: int,
) -> None:
    text = f"{SUBSCRIBED}{end}\n"
    recorded, alone = started.says(text, text, code, **CLIENT)
    assert recorded == alone


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("c = KafkaConsumer('orders', **{**CONFIG, 'group_id': 'x'}); c.close()", "in another group than"),
        ("c = KafkaConsumer('orders', **{**CONFIG, 'group_id': None}); c.close()", "a consumer without a group"),
        ("c = KafkaConsumer(**CONFIG); c.assign([TopicPartition('orders', 0)]); c.close()", "outside the group"),
        ("consumer._subscription.assign_from_subscribed([TopicPartition('orders', 0)]); consumer.seek_to_end()",
         "moves to the end"),
        (FORKED, "forked from"),
    ],
)  # fmt: skip
def test_what_no_history_can_tell_is_said(started: Started, call: str, sentence: str) -> None:  # noqa: F811
    assert started.life(f"{SUBSCRIBED}{call}\nos._exit(0)", **CLIENT).wait_ended(WITHIN_S) == 0
    (reported,) = started.events("unrecorded")
    assert sentence in reported["detail"]["text"]


def test_who_consumes_with_another_library_than_the_scenario_says_is_refused(started: Started) -> None:  # noqa: F811
    life = started.life(f"{SUBSCRIBED}__import__('threading').Event().wait()", client="confluent-kafka")
    with pytest.raises(MemberError, match="set client='kafka-python' there"):
        life.wait_started()


def test_a_package_of_that_name_that_is_another_is_left_alone(started: Started) -> None:  # noqa: F811
    (started.folder / "kafka").mkdir()
    (started.folder / "kafka" / "__init__.py").write_text("HERE = 5\n", encoding="utf-8")
    life: Any = started.life("import kafka; print(kafka.HERE)")
    assert life.wait_ended(WITHIN_S) == 0
    assert life.log.read_text() == "5\n"
