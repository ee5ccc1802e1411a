"""A user's own program as a member: what it notices of that (nothing), and what is said of what cannot be recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from fencepost.clock import NS, eventually
from fencepost.errors import MemberError, WaitTimeout
from fencepost.group import incarnation
from fencepost.group.incarnation import Incarnation, RunPaths
from fencepost.interfaces.process import Interpreter
from fencepost.processes.owner import ProcessOwner
from fencepost_member.config import MemberConfig
from fencepost_member.instrument.program import InstrumentedProgram
from fencepost_member.recording.events import EventLog, read

WITHIN_S = 60.0
NOBODY = "127.0.0.1:1"
CONSUMER = """
import os, sys, threading
from confluent_kafka import Consumer
CONFIG = {"bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "log_level": 0}
"""
SUBSCRIBED = f"{CONSUMER}consumer = Consumer(CONFIG)\nconsumer.subscribe(['orders'])\n"
CONFIG = {
    "member": 0,
    "slot": 0,
    "group": "g-1",
    "topics": {"orders": {"0": 0}},
    "bootstrap": NOBODY,
    "protocol": "eager",
    "client_config": {"session.timeout.ms": 7000},
    "loop": {"processed": "next-poll"},
}


class Started:
    """A program as the harness starts it."""

    def __init__(self, folder: Path, owner: ProcessOwner) -> None:
        self.folder, self.history = folder, folder / "history"
        self._home = RunPaths(owner, EventLog(folder / "harness.jsonl", "harness"), self.history, folder)

    def life(self, text: str, *options: str, **config: Any) -> Incarnation:
        program = self.folder / "program.py"
        program.write_text(text, encoding="utf-8")
        interpreter = Interpreter(command=(sys.executable, *options, str(program)))
        return Incarnation(self._home, "member-0.1", "", {**CONFIG, **config}, interpreter)

    def says(self, text: str, alone: str, code: int, **config: Any) -> tuple[list[str], list[str]]:
        """What a program says as a member, and what ``alone`` does by itself; both end with this code."""
        life = self.life(text, **config)
        assert life.wait_ended(WITHIN_S) == code
        program = self.folder / "program.py"
        program.write_text(alone.replace("kafka.shop.internal:9092", NOBODY), encoding="utf-8")
        argv = [sys.executable, str(program)]
        bare = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert bare.returncode == code
        return _without_frames(life.log.read_text()), _without_frames(bare.stdout)

    def events(self, kind: str) -> list[dict[str, Any]]:
        found = [read(path).events for path in sorted((self.history / "events").glob("*.jsonl"))]
        return [event for events in found for event in events if event["kind"] == kind]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    monkeypatch.chdir(tmp_path)
    with ProcessOwner.open(tmp_path) as owner:
        yield Started(tmp_path, owner)


def test_the_program_finds_the_run_whatever_its_configuration_says(started: Started) -> None:
    secret = "CONFIG.update({'security.protocol': 'SASL_SSL', 'sasl.password': 'x', 'client.id': 'shop-1'})\n"
    with_more = f"{SUBSCRIBED.replace('consumer =', secret + 'consumer =')}consumer.close()"
    assert started.life(with_more).wait_ended(WITHIN_S) == 0
    (reported,) = started.events("started")
    assert reported["detail"]["config"] == {
        "bootstrap.servers": NOBODY,
        "group.id": "g-1",
        "client.id": "member-0.1",
        "session.timeout.ms": 7000,
        "log_level": 0,
    }
    assert {name: reported["detail"][name] for name in ("client", "protocol", "processed", "slot")} == {
        "client": "confluent-kafka",
        "protocol": "eager",
        "processed": "next-poll",
        "slot": 0,
    }
    assert [event["detail"] for event in started.events("closed")] == [{"polls": 0, "records": 0}]
    assert started.events("unrecorded") == []


def test_a_program_that_is_learned_reports_what_it_subscribes_to_and_its_own_group(started: Started) -> None:
    assert started.life(f"{SUBSCRIBED}consumer.close()", topics={}, learning=True).wait_ended(WITHIN_S) == 0
    (asked,), (reported,) = started.events("subscribed"), started.events("started")
    assert asked["detail"] == {"topics": ["orders"], "group": "shop"}
    assert reported["detail"]["client"] == "confluent-kafka"
    assert started.events("unrecorded") == []


@pytest.mark.parametrize(
    "imported",
    [
        "from confluent_kafka import Consumer",
        "from confluent_kafka.cimpl import Consumer",
        "from confluent_kafka import DeserializingConsumer as Consumer",
        "import confluent_kafka as ck\nclass Consumer(ck.Consumer):\n    def poll(self, t=0): return super().poll(t)",
    ],
)
def test_every_way_to_a_consumer_is_recorded(started: Started, imported: str) -> None:
    text = SUBSCRIBED.replace("from confluent_kafka import Consumer", imported)
    assert started.life(f"{text}consumer.poll(0)\nconsumer.close()").wait_ended(WITHIN_S) == 0
    assert len(started.events("started")) == len(started.events("closed")) == 1


def test_another_client_of_the_program_finds_the_run_and_is_not_recorded(started: Started) -> None:
    others = (
        "from confluent_kafka import Producer\nfrom confluent_kafka.admin import AdminClient\n"
        "told = threading.Event()\nhere = lambda e: print(e.str()) or told.set()\n"
        "for client in (Producer({**CONFIG, 'error_cb': here}), AdminClient({**CONFIG, 'error_cb': here})):\n"
        "    while not told.is_set(): client.poll(0.1)\n"
        "    told.clear()\n"
        "audit = Consumer({**CONFIG, 'group.id': 'other'})\naudit.subscribe(['payments'])\naudit.close()\n"
    )
    life = started.life(CONSUMER + others)
    assert life.wait_ended(WITHIN_S) == 0
    said = life.log.read_text()
    assert said.count("127.0.0.1:1/bootstrap") >= 2
    assert "shop.internal" not in said
    assert started.events("started") == started.events("unrecorded") == []
    reported = [(e["actor"], e["detail"]) for e in started.events("producing")]
    assert reported == [("member-0.1", {"client": "confluent-kafka", "idempotent": False})]


@pytest.mark.parametrize(
    ("settings", "idempotent"),
    [
        ("", False),
        ("'enable.idempotence': False", False),
        ("'enable.idempotence': 'True'", True),
        ("'transactional.id': 'a'", True),
    ],
)
def test_whether_a_producer_of_the_program_is_idempotent_is_told_once(
    started: Started, settings: str, idempotent: bool
) -> None:
    made = f"made = [confluent_kafka.Producer({{**CONFIG, {settings}}}) for _ in range(3)]\n"
    assert started.life(f"{CONSUMER}import confluent_kafka\n{made}").wait_ended(WITHIN_S) == 0
    assert [event["detail"]["idempotent"] for event in started.events("producing")] == [idempotent]


def test_what_is_not_recorded_is_told_beside_a_producer(started: Started) -> None:
    child = "__import__('signal').alarm(2); consumer.subscribe(['orders']); os._exit(0)"
    fork = f"if os.fork() == 0:\n    {child}\nos.wait()\n"
    made = "import confluent_kafka\nmade = confluent_kafka.Producer(CONFIG)\n"
    assert started.life(f"{SUBSCRIBED}{made}{fork}consumer.close()").wait_ended(WITHIN_S) == 0
    assert (len(started.events("producing")), len(started.events("unrecorded"))) == (1, 1)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("raise ValueError('no such order')", 1),
        ("print('done'); sys.exit(7)", 7),
        ("consumer.close(); consumer.poll(0)", 1),
        ("consumer.commit(asynchronous=False)", 1),
        ("Consumer({**CONFIG, 'no.such.setting': 1})", 1),
        ("Consumer()", 1),
        ("consumer.subscribe('orders')", 1),
        ("consumer.close(); print(type(consumer), type(consumer).__mro__[-2].__name__, file=sys.stderr)", 0),
    ],
)
def test_what_the_program_says_and_how_it_ends_is_as_without_us(started: Started, end: str, code: int) -> None:
    text = f"{SUBSCRIBED}{end}\n"
    recorded, alone = started.says(text, text.replace("'group.id'", "'x'"), code)
    assert recorded == alone


def _without_frames(text: str) -> list[str]:
    """What a traceback says but for the calls in it."""
    return [line.replace("confluent_kafka.cimpl", "cimpl") for line in text.splitlines() if not line.startswith("  ")]


def test_the_sitecustomize_of_the_site_runs_as_well_and_ours_is_not_seen(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = started.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import builtins\nbuiltins.SITE = __file__\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(site))
    look = "import json, sys\nprint(json.dumps([SITE, sys.modules['sitecustomize'].__file__, sys.path]))"
    life = started.life(look)
    assert life.wait_ended(WITHIN_S) == 0
    ran, module, path = json.loads(life.log.read_text())
    assert ran == module == str(site / "sitecustomize.py")
    assert not [place for place in path if place.endswith("instrument/site")]


@pytest.mark.parametrize("option", ["-S", "-I", "-E"])
def test_a_program_that_python_keeps_from_being_recorded_is_told_so(
    started: Started, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr(incarnation, "START_S", 1.0)
    life = started.life("import threading\nthreading.Event().wait()", option)
    with pytest.raises(WaitTimeout, match="without the options -I, -E and -S, which keep it from importing"):
        life.wait_started()


def test_every_consumer_of_the_group_is_a_member_of_its_own(started: Started) -> None:
    more = "for _ in range(2):\n    c = Consumer(CONFIG)\n    c.subscribe(['orders'])\n    c.poll(0)\n    c.close()\n"
    life = started.life(f"{SUBSCRIBED}{more}consumer.poll(0)\nconsumer.close()", instance_id="g-1-member-0")
    assert life.wait_ended(WITHIN_S) == 0
    assert started.events("unrecorded") == []
    names = {"member-0.1": "g-1-member-0", "member-0b.1": "g-1-member-0-b", "member-0b.1-2": "g-1-member-0-b"}
    reported = {event["actor"]: event["detail"] for event in started.events("started")}
    assert {name: detail["instance_id"] for name, detail in reported.items()} == names
    assert {name: detail["config"]["client.id"] for name, detail in reported.items()} == {name: name for name in names}
    assert {name: detail["config"]["group.instance.id"] for name, detail in reported.items()} == names
    assert {event["actor"] for event in started.events("closed")} == names.keys()
    assert {path.name for path in (started.history / "segments").iterdir()} == {f"{name}.0.seg" for name in names}


def test_a_consumer_that_never_takes_part_leaves_its_name_to_others(started: Started) -> None:
    looks_on = "looks_on = Consumer(CONFIG)\nlooks_on.close()\n"
    life = started.life(f"{CONSUMER}{looks_on}{SUBSCRIBED.removeprefix(CONSUMER)}consumer.close()")
    assert life.wait_ended(WITHIN_S) == 0
    assert [event["actor"] for event in started.events("started")] == ["member-0.1"]


def test_a_consumer_that_the_program_drops_leaves_its_place_to_the_next_one(started: Started) -> None:
    again = "consumer = None\n" + SUBSCRIBED.removeprefix(CONSUMER)
    assert started.life(f"{SUBSCRIBED}{again}consumer.close()").wait_ended(WITHIN_S) == 0
    assert {event["actor"] for event in started.events("started")} == {"member-0.1", "member-0.1-2"}


@pytest.mark.parametrize(
    ("child", "count", "polled"),
    [
        ("consumer.poll(0)", 0, 1),
        ("consumer.consume(5, 0), consumer.poll(0)", 0, 1),
        ("consumer.subscribe(['orders'])", 1, 0),
        ("unused.subscribe(['orders'])", 1, 0),
        ("unused.poll(0)", 0, 0),
        ("other = Consumer(CONFIG); other.subscribe(['orders']); other.close()", 0, 0),
        ("pass", 0, 0),
    ],
)
def test_a_consumer_belongs_to_the_process_that_made_it_and_its_forks_say_so(
    started: Started, child: str, count: int, polled: int
) -> None:
    limit = "__import__('signal').alarm(2)"  # the library's own threads are not in the child, so it may hang
    fork = f"pid = os.fork()\nif pid == 0:\n    {limit}\n    {child}\n    os._exit(0)\nos.waitpid(pid, 0)\n"
    life = started.life(f"{SUBSCRIBED}unused = Consumer(CONFIG)\n{fork}consumer.poll(0)\nconsumer.close()")
    assert life.wait_ended(WITHIN_S) == 0
    assert len(started.events("unrecorded")) == count
    assert [event["actor"] for event in started.events("forked")] == ["member-0.1"] * polled
    own = {"member-0.1"} | ({"member-0c.1"} if "other" in child else set())
    assert {event["actor"] for event in started.events("closed")} == own


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("c = Consumer({**CONFIG, 'group.id': 'x'}); c.assign([TopicPartition('orders', 0)])", "outside the group"),
        ("consumer.assign([TopicPartition('orders', 0, OFFSET_END)])", "moves to the end"),
    ],
)
def test_what_no_history_can_tell_is_said(started: Started, call: str, sentence: str) -> None:
    more = f"from confluent_kafka import TopicPartition, OFFSET_END\n{call}\nconsumer.close()"
    assert started.life(SUBSCRIBED + more).wait_ended(WITHIN_S) == 0
    (reported,) = started.events("unrecorded")
    assert sentence in reported["detail"]["text"]


@pytest.mark.parametrize(("offset", "reported"), [("OFFSET_BEGINNING", [0]), ("7", [7]), ("OFFSET_STORED", [])])
def test_where_the_program_says_that_a_partition_begins_is_told(
    started: Started, offset: str, reported: list[int]
) -> None:
    more = f"from confluent_kafka import *\nconsumer.assign([TopicPartition('orders', 0, {offset})])\nconsumer.close()"
    assert started.life(SUBSCRIBED + more).wait_ended(WITHIN_S) == 0
    assert [at for e in started.events("seek") if e["end_ns"] for _, _, at in e["partitions"]] == reported
    assert started.events("unrecorded") == []


@pytest.mark.parametrize(
    ("text", "protocol", "sentence"),
    [
        (
            "import os, subprocess, sys\n"
            "subprocess.run([sys.executable, '-c', os.environ['TEXT']], start_new_session=True)",
            "eager",
            "it is a child of the started process and has left its process group",
        ),
        (f"{SUBSCRIBED}threading.Event().wait()", "cooperative", "set protocol='eager' there"),
    ],
)
def test_who_is_not_the_member_that_the_scenario_means_is_refused(
    started: Started, monkeypatch: pytest.MonkeyPatch, text: str, protocol: str, sentence: str
) -> None:
    monkeypatch.setenv("TEXT", f"{SUBSCRIBED}threading.Event().wait()")
    with pytest.raises(MemberError, match=sentence):
        started.life(text, protocol=protocol).wait_started()


@pytest.mark.parametrize(
    ("polls", "gaps"),
    [
        ("consumer.poll(1.3)", 0),
        ("consumer.poll(timeout=1.3)", 0),
        ("consumer.consume(5, 1.3)", 0),
        ("consumer.consume(timeout=1.3)", 0),
        ("consumer.poll(0.1); wait(1.3)", 1),
        ("consumer.poll(0.6); wait(1.3)", 1),
        ("consumer.consume(5, 0.6); wait(1.3)", 1),
        pytest.param(
            "signal.setitimer(signal.ITIMER_REAL, 0.3)\ntry: consumer.poll(9)\nexcept OSError: wait(1.3)",
            1,
            marks=pytest.mark.slow,
        ),
        ("try: consumer.poll('x')\nexcept TypeError: wait(1.3)", 1),
    ],
)
def test_a_poll_that_waits_is_no_time_without_a_poll_and_what_comes_behind_it_is(
    started: Started, polls: str, gaps: int
) -> None:
    raises = "import signal\ndef alarm(*_): raise OSError\nsignal.signal(signal.SIGALRM, alarm)\n"
    text = f"{SUBSCRIBED}{raises}wait = threading.Event().wait\n{polls}\nconsumer.poll(0)\nconsumer.close()"
    assert started.life(text).wait_ended(WITHIN_S) == 0
    lasted = [(gap["end_ns"] - gap["begin_ns"]) / NS for gap in started.events("poll-gap")]
    assert len(lasted) == gaps
    assert all(lasts_s > 1.2 for lasts_s in lasted), lasted


@pytest.mark.parametrize(
    ("last", "known"),
    [
        ("consumer.poll()", False),
        ("consumer.consume(9, 300)", False),
        ("consumer.poll(0.6); say('back'); wait()", True),
    ],
)
def test_who_ends_in_a_poll_that_waits_did_not_stop_to_poll(started: Started, last: str, known: bool) -> None:
    words = "wait, say = threading.Event().wait, lambda word: print(word, flush=True)\n"
    life = started.life(f"{SUBSCRIBED}{words}{last}")
    said = "back\n" if known else ""
    eventually(lambda: life.polled_ns > 0 and life.log.read_text() == said, WITHIN_S, "its last poll")
    life.signal(signal.SIGKILL)
    life.wait_ended(WITHIN_S)
    (ended,) = [event for event in read(started.folder / "harness.jsonl").events if event["kind"] == "ended"]
    assert ("polled_ns" in ended["detail"]) == known


@pytest.mark.parametrize(
    ("polls", "callback_s"),
    [
        ("consumer.consume(1, 60)", 1.3),
        (
            "while not called.is_set(): consumer.poll(1)\nconsumer.poll(0)",
            2.3,
        ),  # longer than the poll would have waited
    ],
)
def test_a_callback_within_a_poll_that_waits_is_time_without_a_poll(
    started: Started, polls: str, callback_s: float
) -> None:
    mock = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    broker = next(iter(mock.list_topics(timeout=WITHIN_S).brokers.values()))
    mock.produce("orders", b"x")
    assert mock.flush(WITHIN_S) == 0
    slow = f"called = threading.Event()\ndef slow(*_): called.wait({callback_s}); called.set()\n"
    text = SUBSCRIBED.replace("consumer.subscribe([", f"{slow}consumer.subscribe(['orders'], on_assign=slow) #")
    config = {"auto.offset.reset": "earliest"}
    life = started.life(
        f"{text}{polls}\nconsumer.close()", bootstrap=f"{broker.host}:{broker.port}", client_config=config
    )
    assert life.wait_ended(WITHIN_S) == 0, life.log_end()
    (gap,) = started.events("poll-gap")
    (assigned,) = (event for event in started.events("assigned") if event["end_ns"])
    assert gap["begin_ns"] <= assigned["begin_ns"] < assigned["end_ns"] <= gap["end_ns"]


@pytest.mark.slow
@pytest.mark.parametrize(("slow_s", "gaps"), [(0, False), (1.3, True)])
def test_so_is_one_that_tells_of_an_error(started: Started, slow_s: float, gaps: bool) -> None:
    hears = f"told = threading.Event()\ndef hears(error): told.is_set() or told.wait({slow_s}); told.set()\n"
    text = SUBSCRIBED.replace("Consumer(CONFIG)", "Consumer({**CONFIG, 'error_cb': hears})")
    text = text.replace("consumer = ", f"{hears}consumer = ")
    life = started.life(f"{text}while not told.is_set(): consumer.poll(5)\nconsumer.close()")
    assert life.wait_ended(WITHIN_S) == 0, life.log_end()
    assert bool(started.events("poll-gap")) == gaps


def test_a_pattern_and_a_name_find_the_topics_of_a_run_with_a_prefix(started: Started) -> None:
    text = SUBSCRIBED.replace("['orders']", "['^ord', 'payments']")
    life = started.life(f"{text}consumer.close()", topics={"fencepost-1-orders": {"0": 0}}, prefix="fencepost-1-")
    assert life.wait_ended(WITHIN_S) == 0
    assert len(started.events("started")) == 1


def test_only_topics_of_the_run_are_called_otherwise(tmp_path: Path) -> None:
    topics = {"fencepost-1-orders": {"0": 0}}
    config = MemberConfig("member-0.1", 0, 0, str(tmp_path), "g", topics, NOBODY, prefix="fencepost-1-")
    assert InstrumentedProgram(config, tmp_path).named(["orders", "payments", "^ord"]) == [
        "fencepost-1-orders",
        "payments",
        "^fencepost-1-ord",
    ]


def test_what_cannot_be_instrumented_does_not_run(started: Started) -> None:
    life = started.life(f"{CONSUMER}print('it runs')", loop={"processed": "now and then"})
    assert life.wait_ended(WITHIN_S) == 1
    said = life.log.read_text()
    assert "fencepost cannot instrument confluent_kafka.cimpl" in said
    assert "processed is 'now and then', it must be one of next-poll, commit" in said
    assert "it runs" not in said


def test_who_does_not_belong_to_a_run_is_left_alone(tmp_path: Path) -> None:
    site = Path(incarnation.fencepost_member.__file__).parent / "instrument" / "site"
    env = {**os.environ, "PYTHONPATH": str(site)}
    argv = [sys.executable, "-c", "import confluent_kafka; print(confluent_kafka.Consumer.__module__)"]
    assert subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout == "cimpl\n"
