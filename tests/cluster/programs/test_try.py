"""``fencepost try``: what it says of programs, right and wrong ones, and of those that cannot be tried."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.battery import conduct, learning, situations
from fencepost.battery.card import Card, Result
from fencepost.battery.request import BatteryRequest
from fencepost.checkers.spark.session import Spark
from fencepost.clock import eventually
from fencepost.clusters import backends
from fencepost.errors import MemberError
from fencepost.plugin import Chaos
from fencepost.repeat.batch import RunOptions
from fencepost.scenario import loader

pytestmark = pytest.mark.cluster
SHOP = (sys.executable, "-m", "shop.consumer")
CARD_S = 150.0


def tried(folder: Path, chaos_spark: Spark, *command: str, only: str, **options: str) -> Card:
    """The card of a program in one situation."""
    where = RunOptions(folder, backends.local(), "local[*]")
    request = BatteryRequest(command, **options)
    battery = conduct.Battery(request, situations.chosen([only]), 1, folder, where, conduct.Nobody())
    return battery.run(chaos_spark)[2]


def refused(folder: Path, program: str, **options: str) -> str:
    """The sentence with which a program is refused that cannot be tried."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    request = BatteryRequest((sys.executable, str(folder / "program.py")), **options)
    with pytest.raises(MemberError) as refusal:
        learning.learn(request, backends.local(), folder / "learning", lambda sentence: None)
    return str(refusal.value)


@pytest.mark.core
@pytest.mark.usefixtures("shop_database")
def test_a_correct_program_keeps_its_promises_when_a_member_crashes(tmp_path: Path, chaos_spark: Spark) -> None:
    card = tried(tmp_path, chaos_spark, *SHOP, only="crash", payload="shop.fakes:order")
    row = card["crash"]
    row.must_be_kept()
    assert card.program["topics"] == "orders"
    assert card.program["session time-out"] == "6 s"
    assert (row.lost, row.disruptions) == (0, 2)
    assert row.again > 0
    assert row.standstill_s is not None
    assert 3 < row.standstill_s < 15  # a dead member is missed after its session of 6 s
    assert Card.from_json(json.loads((tmp_path / "card.json").read_text())) == card
    assert f'href="{row.folder}/report.html"' in (tmp_path / "card.html").read_text()
    assert (tmp_path / row.folder / "report.html").exists()


@pytest.mark.usefixtures("shop_database")
def test_a_program_that_commits_what_it_lost_is_broken_by_a_freeze_past_its_session(
    tmp_path: Path, chaos_spark: Spark
) -> None:
    card = tried(tmp_path, chaos_spark, *SHOP, "--keep-batch", only="long-freeze", payload="shop.fakes:order")
    row = card["long-freeze"]
    assert row.result is Result.BROKEN
    assert row.kind in ("zombie-commit", "commit-regression", "commit-ahead", "unseen")
    assert row.finding


@pytest.mark.chaos
@pytest.mark.usefixtures("shop_database")
def test_a_chaos_test_gets_the_card_and_asserts_each_situation(chaos: Chaos) -> None:
    card = chaos.try_program(SHOP, only=["restart"], payload="shop.fakes:order")
    assert [row.situation for row in card.rows] == ["restart"]
    card["restart"].must_be_kept()
    card.must_keep_its_promises()


@pytest.mark.usefixtures("shop_database")
def test_interrupted_it_ends_with_the_card_of_what_there_is(tmp_path: Path) -> None:
    options = ["--payload", "shop.fakes:order", "--only", "steady,crash", "--runs", str(tmp_path), "--seed", "1"]
    saved = ["--save", str(tmp_path / "shop.toml")]
    command = [sys.executable, "-m", "fencepost", "try", *options, *saved, "--", *SHOP]
    log = tmp_path / "output"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, "COLUMNS": "160"})
    try:
        eventually(lambda: "situation 2 of 2" in log.read_text(), CARD_S, "the second situation", state=log.read_text)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 3
    finally:
        process.kill()
    (folder,) = tmp_path.glob("try-*")
    card = Card.from_json(json.loads((folder / "card.json").read_text()))
    assert [row.result for row in card.rows] == [Result.KEPT, Result.NOT_SEEN]
    assert "interrupted" in card["crash"].reason
    assert re.search(r"a member crashes with records in hand +\? not seen", log.read_text())
    assert loader.load(tmp_path / "shop.toml").topics[0].name == "orders"


def test_a_program_that_ends_before_it_subscribes_is_answered_with_its_last_words(tmp_path: Path) -> None:
    sentence = refused(tmp_path, "raise SystemExit('the registry at registry.internal:8081 does not answer')")
    assert "ended with exit code 1 before it subscribed" in sentence
    assert "registry.internal:8081 does not answer" in sentence
    assert "Does the program need a service that is not there" in sentence


def test_a_program_that_never_subscribes_is_answered_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "SUBSCRIBED_S", 3.0)
    sentence = refused(tmp_path, "import threading; print('waiting for a lock', flush=True); threading.Event().wait()")
    assert "did not subscribe to any topic within 3 s" in sentence
    assert "waiting for a lock" in sentence


def test_a_program_that_cannot_read_meaningless_records_is_told_of_the_payload(tmp_path: Path) -> None:
    program = """
import json
from kafka import KafkaConsumer
for record in KafkaConsumer("orders", group_id="shop", bootstrap_servers="kafka.shop.internal:9092"):
    print(json.loads(record.value)["id"])
"""
    sentence = refused(tmp_path, program)
    assert "does not process records" in sentence
    assert "--payload" in sentence


def test_a_pattern_needs_topics_that_exist(tmp_path: Path) -> None:
    program = """
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop"})
consumer.subscribe(["^orders.*"])
while True:
    consumer.poll(1)
"""
    assert "--topics" in refused(tmp_path, program)
