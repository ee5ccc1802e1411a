"""A program that says itself when it is done with a record, as a member and by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from unit.member.test_instrument import CONSUMER, NOBODY, SUBSCRIBED, WITHIN_S, Started, started  # noqa: F401 (a fixture)

from fencepost.evidence.sealing.segment_reader import read_segments
from fencepost_member import api
from fencepost_member.config import LoopConfig, MemberConfig
from fencepost_member.instrument.program import InstrumentedProgram
from fencepost_member.instrument.recording import Recording
from fencepost_member.recording.events import read

SNIPPET = """
try:
    from fencepost_member.api import processed
except ImportError:
    def processed(record): ...
"""
RECORD = "__import__('collections').namedtuple('Record', 'topic partition offset')"
TOLD = {"loop": {"processed": "told"}}


class Message:
    """As confluent-kafka has them; other libraries have attributes."""

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        self.topic, self.partition, self.offset = (lambda: topic), (lambda: partition), lambda: offset


class Members:
    """A program with consumers, of which records were really recorded."""

    def __init__(self, folder: Path, processed: str) -> None:
        self.run = folder / "run"
        loop = LoopConfig(processed=processed)
        config = MemberConfig("member-0.1", 0, 0, str(self.run), "g", {"orders": {"0": 0, "1": 1}}, NOBODY, loop=loop)
        (self.run / "events").mkdir(parents=True)
        self.program = InstrumentedProgram(config, folder / "claims")
        api.PROGRAMS.append(self.program)
        self._made: list[Recording] = []  # a program that drops one has it no more

    def consumer(self) -> Recording:
        _, claim = self.program.consuming({"group.id": "shop"})
        made = Recording(self.program, claim, lambda: ("", 0))
        made.subscribing(["orders"])
        self._made.append(made)
        return made

    def done(self) -> dict[str, set[tuple[int, int]]]:
        """What each consumer was done with."""
        segments, _ = read_segments(self.run / "segments")
        return {
            s.header.actor: {(int(r["tp"]), int(r["offset"])) for r in s.records if r["done_ns"] > 0} for s in segments
        }

    def unrecorded(self) -> list[str]:
        found = [event for path in (self.run / "events").glob("*.jsonl") for event in read(path).events]
        return [event["detail"]["text"] for event in found if event["kind"] == "unrecorded"]


@pytest.fixture
def members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Members]:
    monkeypatch.setenv(api.CONFIG, str(tmp_path / "member.json"))
    monkeypatch.setattr(api, "PROGRAMS", [])
    return Members(tmp_path, getattr(request, "param", "told"))


def given(consumer: Recording, partition: int, *offsets: int) -> list[Message]:
    tp = ("orders", partition)
    with consumer.assigned_callback([tp]):
        pass
    consumer.delivered([(*tp, offset, b"1", None, None) for offset in offsets], stores=True)
    return [Message(*tp, offset) for offset in offsets]


def test_threads_are_done_with_records_in_any_order(members: Members) -> None:
    consumer = members.consumer()
    messages = given(consumer, 0, *range(2000))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(api.processed, [m for m in reversed(messages) if m.offset() % 10]))
    consumer.committing({("orders", 0): 2000}, wait=True, named=True)
    consumer.polls()
    consumer.closing()
    assert members.done() == {"member-0.1": {(0, at) for at in range(2000) if at % 10}}


@pytest.mark.parametrize("members", ["next-poll", "commit"], indirect=True)
def test_by_another_rule_it_says_nothing(members: Members) -> None:
    consumer = members.consumer()
    for message in given(consumer, 0, 1, 2):
        api.processed(message)
    assert members.done() == {"member-0.1": set()}
    assert members.unrecorded() == []


def test_what_two_consumers_were_given_is_done_by_who_owns_the_partition(members: Members) -> None:
    first, second = members.consumer(), members.consumer()
    given(first, 0, 1, 2)
    with first.revoked_callback("revoked", [("orders", 0)]):
        pass
    for message in given(second, 0, 2, 3):
        api.processed(message)
    api.processed(Message("orders", 0, 1))
    api.processed(Message("payments", 0, 1))
    assert members.done() == {"member-0.1": {(0, 1)}, "member-0b.1": {(0, 2), (0, 3)}}


def test_consumers_come_and_go_while_others_say_so(members: Members) -> None:
    kept = members.consumer()
    messages, stop = given(kept, 0, *range(3000)), threading.Event()

    def others() -> None:
        while not stop.is_set():
            Recording(members.program, None, lambda: ("", 0))

    thread = threading.Thread(target=others)
    thread.start()
    for message in messages:
        api.processed(message)
    stop.set()
    thread.join()
    assert len(members.done()["member-0.1"]) == 3000


def test_a_process_that_was_given_nothing_says_so_once(members: Members) -> None:
    for offset in range(3):
        api.processed(Message("orders", 0, offset))
    (text,) = members.unrecorded()
    assert text == f"process {os.getpid()} reports a record as processed that a consumer of another process received"


@pytest.mark.parametrize("library", ["confluent_kafka", "kafka", "aiokafka"])
def test_it_is_there_for_every_instrumented_library(started: Started, library: str) -> None:  # noqa: F811
    says = f"import {library}, os\n{SNIPPET}processed({RECORD}('orders', 0, 7))\nprint(processed.__module__)"
    life = started.life(says, **TOLD)
    assert life.wait_ended(WITHIN_S) == 0
    assert life.log.read_text().splitlines()[-1] == "fencepost_member.api"
    assert len(started.events("unrecorded")) == 1  # it has no consumer


@pytest.mark.parametrize(
    ("child", "count"),
    [
        ("pid = os.fork()\nif pid == 0:\n    processed(R('orders', 0, 7)); os._exit(0)\nos.waitpid(pid, 0)", 1),
        ("import subprocess; subprocess.run([sys.executable, '-c', os.environ['CHILD']], check=True)", 1),
        ("processed(R('orders', 0, 7))", 0),
    ],
    ids=["fork", "spawned", "here"],
)
def test_it_is_said_in_the_process_of_the_consumer(
    started: Started,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    child: str,
    count: int,
) -> None:
    monkeypatch.setenv("CHILD", f"{SNIPPET}processed({RECORD}('orders', 0, 7))")
    text = f"{SUBSCRIBED}{SNIPPET}R = {RECORD}\n{child}\nconsumer.close()"
    assert started.life(text, **TOLD).wait_ended(WITHIN_S) == 0
    assert len(started.events("unrecorded")) == count
    assert [event["detail"]["processed"] for event in started.events("started")] == ["told"]


@pytest.mark.parametrize("without", ["-S", "-s"], ids=["nothing of ours installed", "ours installed"])
def test_outside_of_a_run_it_does_nothing(without: str) -> None:
    code = f"import json, sys\n{SNIPPET}print(json.dumps(processed(None)))"
    found = subprocess.run([sys.executable, without, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) is None
