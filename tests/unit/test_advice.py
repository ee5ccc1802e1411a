"""Advice on settings: each rule has what it is for and a near miss, and only what members ran with counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import report_runs as runs

from fencepost.history import DELIVERED_COLUMNS
from fencepost.reports import advice, folder, html
from fencepost.reports.advice import Life

GOOD = {
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 2000,
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "cooperative-sticky",
}
RULES: list[tuple[Callable[[Life], str], dict[str, Any], str, str]] = [
    (advice.heartbeat, {"heartbeat.interval.ms": 2001}, "cooperative", "2,001, more than a third of session.timeout"),
    (advice.heartbeat, {"heartbeat.interval.ms": 2000}, "cooperative", ""),
    (advice.heartbeat, {"heartbeat.interval.ms": "2001"}, "eager", "Use 2,000 or less"),
    (advice.heartbeat, {"heartbeat.interval.ms": 5000}, "consumer", ""),
    (advice.session, {"session.timeout.ms": 6000}, "eager", ""),
    (advice.automatic_commit, {"enable.auto.commit": True}, "eager", "commits by itself what polls returned"),
    (advice.automatic_commit, {"enable.auto.commit": "True"}, "eager", "commits by itself what polls returned"),
    (advice.automatic_commit, {"enable.auto.commit": True, "enable.auto.offset.store": False}, "eager", ""),
    (advice.offset_reset, {"auto.offset.reset": "largest"}, "eager", "is largest: what a new partition holds"),
    (advice.offset_reset, {"auto.offset.reset": "error"}, "eager", ""),
    (advice.assignor, {"partition.assignment.strategy": "roundrobin"}, "eager", "all partitions from all members"),
    (advice.assignor, {"partition.assignment.strategy": "roundrobin,cooperative-sticky"}, "eager", "one is no gain"),
    (advice.assignor, {"partition.assignment.strategy": "range"}, "consumer", ""),
]
DEFAULT = [
    (advice.heartbeat, ""),
    (advice.automatic_commit, "enable.auto.commit is true"),
    (advice.offset_reset, "auto.offset.reset is latest"),
    (advice.assignor, "partition.assignment.strategy is range"),
    (advice.poll_interval, ""),
]


@pytest.mark.parametrize(("rule", "changed", "protocol", "told"), RULES)
def test_a_rule_speaks_of_what_it_is_for_and_of_nothing_else(rule, changed, protocol, told):
    life = Life(protocol, {**GOOD, **changed})
    assert told in rule(life)
    assert bool(rule(life)) == bool(told)
    assert [other(life) for other in advice.RULES if other is not rule] == [""] * (len(advice.RULES) - 1)


@pytest.mark.parametrize(("rule", "told"), DEFAULT)
def test_what_was_not_set_is_what_clients_take_for_it(rule, told):
    assert told in rule(Life("eager", {}))
    assert bool(rule(Life("eager", {}))) == bool(told)


@pytest.mark.parametrize(
    ("session_ms", "told"),
    [
        (5999, "session.timeout.ms is 5,999, and the brokers' group.min.session.timeout.ms is 6,000"),
        (6000, ""),
        (20_000, ""),
        (20_001, "group.max.session.timeout.ms is 20,000"),
    ],
)
def test_a_session_is_within_what_brokers_take(session_ms, told):
    life = Life("eager", {"session.timeout.ms": session_ms}, sessions_ms=(6000, 20_000))
    assert told in advice.session(life)
    assert bool(advice.session(life)) == bool(told)
    assert advice.session(Life("consumer", life.settings, sessions_ms=life.sessions_ms)) == ""


@pytest.mark.parametrize(
    ("brokers", "members"),
    [
        ({}, 0),
        ({"group.min.session.timeout.ms": 1000}, 0),
        ({"group.min.session.timeout.ms": 1000, "group.max.session.timeout.ms": 5000}, 1),
        ({"group.min.session.timeout.ms": 6001}, 1),
        ({"group.max.session.timeout.ms": "soon"}, 0),
    ],
)
def test_what_brokers_take_is_known_of_a_cluster_of_the_runs_own(tmp_path: Path, brokers, members) -> None:
    run = run_of(tmp_path / "run", {})
    scenario = json.loads((run / "scenario.json").read_text())
    (run / "scenario.json").write_text(json.dumps({**scenario, "cluster": {"broker_config": brokers}}))
    assert [one.to for one in advice.advise(folder.read(run))] == [("member-0",)] * members


@pytest.mark.parametrize(
    ("ids", "fault", "to"),
    [
        (("a", "a", "b"), "kill", ("member-0", "member-1")),
        (("a", "b", "c"), "kill", ()),
        (("a", "a", "b"), "duplicate_instance", ()),
    ],
)
def test_a_static_id_is_one_members_alone(tmp_path: Path, ids, fault, to) -> None:
    """Each member has two lives, with the same id."""
    run = run_of(tmp_path / "run", *({"group.instance.id": one} for one in ids))
    (run / "plan.json").write_text(json.dumps({"seed": 1, "steps": [{"step": 0, "fault": {"type": fault}}]}))
    said = advice.advise(folder.read(run))
    assert [one.to for one in said] == [to] * bool(to)
    assert all("group.instance.id a is that of several members" in one.sentence for one in said)


@pytest.mark.parametrize(
    ("fault", "slow_ms", "told"),
    [("kill", 100_267, "150,001 ms"), ("kill", 100_266, ""), ("pause", 100_267, ""), ("stall", 100_267, "")],
)
def test_the_slowest_record_counts_but_for_how_long_it_was_held_up(tmp_path: Path, fault, slow_ms, told) -> None:
    """Beside one of 1 ms. The machine stood still for 400 ms."""
    run = run_of(tmp_path / "run", {}, workload={"type": "poll_loop", "batch": 2}, record_ms=1, slow_ms=slow_ms)
    (run / "plan.json").write_text(json.dumps({"seed": 1, "steps": [{"step": 0, "fault": {"type": fault}}]}))
    said = advice.advise(folder.read(run))
    assert len(said) == bool(told)
    assert all(told in one.sentence for one in said)


@pytest.mark.parametrize(
    ("work_ms", "settings", "told"),
    [
        (150_000, {}, ""),
        (150_001, {}, "the records of one poll may take 150,001 ms"),
        (3_000, {"max.poll.interval.ms": 6_000}, ""),
        (3_001, {"max.poll.interval.ms": "6000"}, "max.poll.interval.ms is 6,000: less than 2 times as much"),
        (150_000, {"max.poll.interval.ms": "soon"}, ""),
    ],
)
def test_the_records_of_a_poll_take_half_of_the_poll_interval_at_most(work_ms, settings, told):
    said = advice.poll_interval(Life("eager", settings, work_ms))
    assert told in said
    assert bool(said) == bool(told)


@pytest.mark.parametrize(
    ("topic", "cluster", "told"),
    [
        ({"replication_factor": 1}, {"brokers": 3}, "the replication factor is 1"),
        ({"replication_factor": 1}, {"brokers": 1}, ""),
        ({"replication_factor": 1}, {}, ""),
        ({"replication_factor": 3}, {"brokers": 3}, ""),
        ({"replication_factor": 3, "config": {"min.insync.replicas": "3"}}, {"brokers": 3}, "3 of 3 replicas"),
        ({"replication_factor": 3, "config": {"min.insync.replicas": 2}}, {"brokers": 3}, ""),
        ({"replication_factor": 3}, {"brokers": 3, "broker_config": {"min.insync.replicas": 1}}, "in one place only"),
        (
            {"replication_factor": 3, "config": {"min.insync.replicas": 2}},
            {"brokers": 3, "broker_config": {"min.insync.replicas": 1}},
            "",
        ),
    ],
)
def test_a_topic_outlives_a_broker(topic, cluster, told):
    said = advice.replicas(topic, cluster)
    assert told in said
    assert bool(said) == bool(told)


@pytest.mark.parametrize(
    ("transactions", "isolation", "advised"),
    [
        (True, "read_uncommitted", True),
        (True, "read_committed", False),
        (True, "", False),
        (False, "read_uncommitted", False),
    ],
)
def test_who_reads_what_may_be_aborted_is_told(transactions, isolation, advised):
    said = advice.uncommitted(Life("eager", GOOD, isolation=isolation, transactions=transactions))
    assert ("isolation.level is read_uncommitted" in said) == bool(said) == advised


@pytest.mark.parametrize(
    ("each", "told", "advised"),
    [
        (200, {"client": "kafka-python"}, True),
        (200, {"client": "aiokafka", "config": {"isolation.level": "read_uncommitted"}}, True),
        (200, {"client": "kafka-python", "config": {"isolation.level": "read_committed"}}, False),
        (200, {"client": "confluent-kafka"}, False),
        (200, {"client": "sarama", "told_by": "lines", "config": {"a": 1}}, False),
        (0, {"client": "kafka-python"}, False),
    ],
)
def test_what_a_member_reads_is_by_its_settings_and_its_clients_default(
    tmp_path: Path, each: int, told: dict[str, Any], advised: bool
) -> None:
    run = run_of(tmp_path / "run", {**GOOD, **told.pop("config", {})}, workload={"transaction_records": each}, **told)
    assert [one.to for one in advice.advise(folder.read(run))] == [("member-0",)] * advised


def run_of(
    path: Path,
    *settings: dict[str, Any],
    workload: dict[str, Any] | None = None,
    record_ms: int = 0,
    slow_ms: int = 0,
    **told: Any,
) -> Path:
    """A run with a member for each of these settings, whose records took so long, and one ``slow_ms`` if that is not 0;
    ``told``: what they tell besides."""
    history = runs.group_history()
    for member, one in enumerate(settings):
        detail = {"member": member, "protocol": "eager", "config": {**GOOD, **one}, **told}
        history.add("started", f"member-{member}.1", 3.5, detail=detail)
        history.add("started", f"member-{member}.2", 9.5, detail=detail)
    told = runs.write_run(path, runs.verdict("x", runs.checks("valid")), history)
    scenario = json.loads((told / "scenario.json").read_text())
    scenario["scenario"]["workload"] = workload or {"type": "poll_loop", "batch": 500}
    (told / "scenario.json").write_text(json.dumps(scenario))
    columns = {name: [0] * 3 for name in DELIVERED_COLUMNS}
    begun = [runs.at(1), runs.at(2), runs.at(3)]
    done = [
        begun[0] + record_ms * 1_000_000,
        begun[1] + (slow_ms or record_ms) * 1_000_000,
        0,
    ]  # the last one never was
    pq.write_table(
        pa.table({**columns, "begin_ns": begun, "done_ns": done}), told / "history/delivered/member-0.1.parquet"
    )
    return told


def test_a_sentence_comes_once_with_all_members_whom_it_is_for(tmp_path: Path) -> None:
    bad = {"auto.offset.reset": "latest"}
    run = run_of(tmp_path / "run", *[bad, {}] * 5, bad)
    (one,) = advice.advise(folder.read(run))
    assert one.to == ("member-0", "member-2", "member-4", "member-6", "member-8", "member-10")
    page = html.render(run).read_text()
    assert page.count(one.sentence.split(":")[0]) == 1
    assert "member-8, member-10</span>" in page


@pytest.mark.parametrize(
    ("told", "advised"),
    [
        ({"config": {}, "told_by": "lines"}, False),
        ({"config": {}}, True),
        ({"config": {"a": 1}, "told_by": "lines"}, True),
    ],
    ids=["by lines, without settings", "by a client", "by lines, with settings"],
)
def test_of_settings_that_a_program_does_not_tell_nothing_is_said(
    tmp_path: Path, told: dict[str, Any], advised: bool
) -> None:
    history = runs.group_history()
    history.add("started", "member-0.1", 3.5, detail={"member": 0, "protocol": "eager", **told})
    run = runs.write_run(tmp_path / "run", runs.verdict("x", runs.checks("valid")), history)
    assert bool(advice.advise(folder.read(run))) == advised


def test_what_is_well_set_gets_no_advice(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {}, {})
    assert advice.advise(folder.read(run)) == []
    assert "There is none." in html.render(run).read_text()


@pytest.mark.parametrize(
    ("workload", "settings", "record_ms", "told"),
    [
        ({"type": "poll_loop", "batch": 500}, {}, 301, ("150,500 ms",)),
        ({"type": "poll_loop", "batch": 500}, {}, 300, ()),
        ({"type": "poll_loop", "batch": 500}, {"max.poll.records": 100}, 1501, ("150,100 ms",)),
        ({"type": "poll_loop", "batch": 100}, {"max.poll.records": 500}, 1501, ("150,100 ms",)),
        ({"type": "own_program"}, {}, 301, ()),
        ({"type": "own_program"}, {}, 150_001, ("150,001 ms",)),
    ],
)
def test_how_long_a_poll_takes_is_measured(tmp_path: Path, workload, settings, record_ms, told) -> None:
    run = run_of(tmp_path / "run", settings, workload=workload, record_ms=record_ms)
    said = advice.advise(folder.read(run))
    assert len(said) == len(told)
    assert all(words in one.sentence for one, words in zip(said, told, strict=True))


def test_a_run_of_another_version_is_drawn_without_advice(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {"auto.offset.reset": ["latest"], "session.timeout.ms": None})
    for wrong in ({"topics": 7, "workload": 7}, {"topics": [7, {"replication_factor": "x"}]}):
        (run / "scenario.json").write_text(json.dumps({"scenario": wrong, "cluster": {"brokers": []}}))
        assert advice.advise(folder.read(run)) == []
