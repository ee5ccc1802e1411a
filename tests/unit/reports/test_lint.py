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
from fencepost.model import Check, Finding, Severity, Validity
from fencepost.reports import folder, html
from fencepost.reports.lint import advise, group, settings
from fencepost.reports.lint.settings import MemberSettings

GOOD = {
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 2000,
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "cooperative-sticky",
}
RULES: list[tuple[Callable[[MemberSettings], str], dict[str, Any], str, str]] = [
    (settings.heartbeat, {"heartbeat.interval.ms": 2001}, "cooperative", "2,001, more than a third of session.timeout"),
    (settings.heartbeat, {"heartbeat.interval.ms": 2000}, "cooperative", ""),
    (settings.heartbeat, {"heartbeat.interval.ms": "2001"}, "eager", "Use 2,000 or less"),
    (settings.heartbeat, {"heartbeat.interval.ms": 5000}, "consumer", ""),
    (settings.session, {"session.timeout.ms": 6000}, "eager", ""),
    (
        settings.automatic_commit,
        {"enable.auto.commit": True},
        "eager",
        "the client commits the records that polls returned",
    ),
    (
        settings.automatic_commit,
        {"enable.auto.commit": "True"},
        "eager",
        "the client commits the records that polls returned",
    ),
    (settings.automatic_commit, {"enable.auto.commit": True, "enable.auto.offset.store": False}, "eager", ""),
    (
        settings.offset_reset,
        {"auto.offset.reset": "largest"},
        "eager",
        "is largest: records that a new partition holds",
    ),
    (settings.offset_reset, {"auto.offset.reset": "error"}, "eager", ""),
    (settings.assignor, {"partition.assignment.strategy": "roundrobin"}, "eager", "all partitions of all members"),
    (
        settings.assignor,
        {"partition.assignment.strategy": "roundrobin,cooperative-sticky"},
        "eager",
        "assignor has no benefit",
    ),
    (settings.assignor, {"partition.assignment.strategy": "range"}, "consumer", ""),
]
DEFAULT = [
    (settings.heartbeat, ""),
    (settings.automatic_commit, "enable.auto.commit is true"),
    (settings.offset_reset, "auto.offset.reset is latest"),
    (settings.assignor, "partition.assignment.strategy is range"),
    (settings.poll_interval, ""),
]


@pytest.mark.parametrize(("rule", "changed", "protocol", "reported"), RULES)
def test_a_rule_speaks_of_what_it_is_for_and_of_nothing_else(rule, changed, protocol, reported):
    life = MemberSettings(protocol, {**GOOD, **changed})
    assert reported in rule(life)
    assert bool(rule(life)) == bool(reported)
    assert [other(life) for other in settings.RULES if other is not rule] == [""] * (len(settings.RULES) - 1)


@pytest.mark.parametrize(("rule", "reported"), DEFAULT)
def test_what_was_not_set_is_what_clients_take_for_it(rule, reported):
    assert reported in rule(MemberSettings("eager", {}))
    assert bool(rule(MemberSettings("eager", {}))) == bool(reported)


@pytest.mark.parametrize(
    ("session_ms", "reported"),
    [
        (5999, "session.timeout.ms is 5,999, but the brokers' group.min.session.timeout.ms is 6,000"),
        (6000, ""),
        (20_000, ""),
        (20_001, "group.max.session.timeout.ms is 20,000"),
    ],
)
def test_a_session_is_within_what_brokers_take(session_ms, reported):
    life = MemberSettings("eager", {"session.timeout.ms": session_ms}, sessions_ms=(6000, 20_000))
    assert reported in settings.session(life)
    assert bool(settings.session(life)) == bool(reported)
    assert settings.session(MemberSettings("consumer", life.settings, sessions_ms=life.sessions_ms)) == ""


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
    assert [one.to for one in advise(folder.read(run))] == [("member-0",)] * members


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
    run = run_of(tmp_path / "run", *({"group.instance.id": one} for one in ids), history=hit_by(fault))
    said = advise(folder.read(run))
    assert [one.to for one in said] == [to] * bool(to)
    assert all("several members use group.instance.id a" in one.sentence for one in said)


@pytest.mark.parametrize(
    ("fault", "slow_ms", "reported"),
    [("kill", 100_267, "150,001 ms"), ("kill", 100_266, ""), ("pause", 100_267, ""), ("stall", 100_267, "")],
)
def test_the_slowest_record_counts_but_for_how_long_it_was_held_up(tmp_path: Path, fault, slow_ms, reported) -> None:
    """Beside one of 1 ms. The machine stood still for 400 ms."""
    workload = {"type": "poll_loop", "batch": 2}
    run = run_of(tmp_path / "run", {}, workload=workload, record_ms=1, slow_ms=slow_ms, history=hit_by(fault))
    said = advise(folder.read(run))
    assert len(said) == bool(reported)
    assert all(reported in one.sentence for one in said)


@pytest.mark.parametrize(("declared", "reported"), [(["delays"], False), (["ends"], True), ([], True)])
def test_a_fault_of_ones_own_holds_up_whom_it_says(tmp_path: Path, declared: list[str], reported: bool) -> None:
    workload = {"type": "poll_loop", "batch": 2}
    history = hit_by("mine", impact=declared)
    run = run_of(tmp_path / "run", {}, workload=workload, record_ms=1, slow_ms=100_267, history=history)
    assert bool(advise(folder.read(run))) == reported


@pytest.mark.parametrize(
    ("work_ms", "given", "reported"),
    [
        (150_000, {}, ""),
        (150_001, {}, "the records of one poll may take 150,001 ms"),
        (3_000, {"max.poll.interval.ms": 6_000}, ""),
        (3_001, {"max.poll.interval.ms": "6000"}, "max.poll.interval.ms is 6,000: less than 2 times as much"),
        (150_000, {"max.poll.interval.ms": "soon"}, ""),
    ],
)
def test_the_records_of_a_poll_take_half_of_the_poll_interval_at_most(work_ms, given, reported):
    said = settings.poll_interval(MemberSettings("eager", given, work_ms))
    assert reported in said
    assert bool(said) == bool(reported)


@pytest.mark.parametrize(
    ("topic", "cluster", "reported"),
    [
        ({"replication_factor": 1}, {"brokers": 3}, "the replication factor is 1"),
        ({"replication_factor": 1}, {"brokers": 1}, ""),
        ({"replication_factor": 1}, {}, ""),
        ({"replication_factor": 3}, {"brokers": 3}, ""),
        ({"replication_factor": 3, "config": {"min.insync.replicas": "3"}}, {"brokers": 3}, "3 of 3 replicas"),
        ({"replication_factor": 3, "config": {"min.insync.replicas": 2}}, {"brokers": 3}, ""),
        ({"replication_factor": 3}, {"brokers": 3, "broker_config": {"min.insync.replicas": 1}}, "on one broker only"),
        (
            {"replication_factor": 3, "config": {"min.insync.replicas": 2}},
            {"brokers": 3, "broker_config": {"min.insync.replicas": 1}},
            "",
        ),
    ],
)
def test_a_topic_outlives_a_broker(topic, cluster, reported):
    said = group.replicas(topic, cluster)
    assert reported in said
    assert bool(said) == bool(reported)


@pytest.mark.parametrize(("count", "to"), [(1, ("orders",)), (3, ())])
def test_what_is_said_of_a_topic_names_it(tmp_path: Path, count: int, to: tuple[str, ...]) -> None:
    run = run_of(tmp_path / "run", {})
    scenario = json.loads((run / "scenario.json").read_text())
    scenario["scenario"]["topics"] = [{"name": "orders", "replication_factor": count}]
    (run / "scenario.json").write_text(json.dumps({**scenario, "cluster": {"brokers": 3}}))
    assert [one.to for one in advise(folder.read(run))] == [to] * bool(to)


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
    said = settings.uncommitted(MemberSettings("eager", GOOD, isolation=isolation, transactions=transactions))
    assert ("isolation.level is read_uncommitted" in said) == bool(said) == advised


@pytest.mark.parametrize(
    ("each", "reported", "advised"),
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
    tmp_path: Path, each: int, reported: dict[str, Any], advised: bool
) -> None:
    run = run_of(
        tmp_path / "run", {**GOOD, **reported.pop("config", {})}, workload={"transaction_records": each}, **reported
    )
    assert [one.to for one in advise(folder.read(run))] == [("member-0",)] * advised


def hit_by(fault: str, **declared: Any) -> runs.History:
    """The usual history, with one fault alone, and what its event declares."""
    history = runs.group_history()
    history.rows = [row for row in history.rows if row["kind"] not in ("fault", "healed")]
    detail = {"step": 0, "fault": fault, "target": "member-0", "members": ["member-0.1"], **declared}
    history.add("fault", "harness", 15, 15.1, outcome="ok", detail=detail)
    return history


def run_of(
    path: Path,
    *settings: dict[str, Any],
    workload: dict[str, Any] | None = None,
    record_ms: int = 0,
    slow_ms: int = 0,
    history: runs.History | None = None,
    **reported: Any,
) -> Path:
    """A run with a member for each of these settings, whose records took so long, and one ``slow_ms`` if that is not 0;
    ``history``: else the usual one; ``reported``: what they tell besides."""
    history = history or runs.group_history()
    for member, one in enumerate(settings):
        detail = {"member": member, "protocol": "eager", "config": {**GOOD, **one}, **reported}
        history.add("started", f"member-{member}.1", 3.5, detail=detail)
        history.add("started", f"member-{member}.2", 9.5, detail=detail)
    reported = runs.write_run(path, runs.verdict("x", runs.checks("valid")), history)
    scenario = json.loads((reported / "scenario.json").read_text())
    scenario["scenario"]["workload"] = workload or {"type": "poll_loop", "batch": 500}
    (reported / "scenario.json").write_text(json.dumps(scenario))
    columns = {name: [0] * 3 for name in DELIVERED_COLUMNS}
    begun = [runs.at(1), runs.at(2), runs.at(3)]
    done = [
        begun[0] + record_ms * 1_000_000,
        begun[1] + (slow_ms or record_ms) * 1_000_000,
        0,
    ]  # the last one never was
    pq.write_table(
        pa.table({**columns, "begin_ns": begun, "done_ns": done}), reported / "history/delivered/member-0.1.parquet"
    )
    return reported


def test_a_sentence_comes_once_with_all_members_whom_it_is_for(tmp_path: Path) -> None:
    bad = {"auto.offset.reset": "latest"}
    run = run_of(tmp_path / "run", *[bad, {}] * 5, bad)
    (one,) = advise(folder.read(run))
    assert one.to == ("member-0", "member-2", "member-4", "member-6", "member-8", "member-10")
    page = html.render(run).read_text()
    assert page.count(one.sentence.split(":")[0]) == 1
    assert "member-8, member-10</span>" in page


@pytest.mark.parametrize(
    ("reported", "advised"),
    [
        ({"config": {}, "told_by": "lines"}, False),
        ({"config": {}}, True),
        ({"config": {"a": 1}, "told_by": "lines"}, True),
    ],
    ids=["by lines, without settings", "by a client", "by lines, with settings"],
)
def test_of_settings_that_a_program_does_not_tell_nothing_is_said(
    tmp_path: Path, reported: dict[str, Any], advised: bool
) -> None:
    history = runs.group_history()
    history.add("started", "member-0.1", 3.5, detail={"member": 0, "protocol": "eager", **reported})
    run = runs.write_run(tmp_path / "run", runs.verdict("x", runs.checks("valid")), history)
    assert bool(advise(folder.read(run))) == advised


def test_what_is_well_set_gets_no_advice(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {}, {})
    assert advise(folder.read(run)) == []
    assert "The lint has no advice." in html.render(run).read_text()


@pytest.mark.parametrize(
    ("workload", "settings", "record_ms", "reported"),
    [
        ({"type": "poll_loop", "batch": 500}, {}, 301, ("150,500 ms",)),
        ({"type": "poll_loop", "batch": 500}, {}, 300, ()),
        ({"type": "poll_loop", "batch": 500}, {"max.poll.records": 100}, 1501, ("150,100 ms",)),
        ({"type": "poll_loop", "batch": 100}, {"max.poll.records": 500}, 1501, ("150,100 ms",)),
        ({"type": "own_program"}, {}, 301, ()),
        ({"type": "own_program"}, {}, 150_001, ("150,001 ms",)),
    ],
)
def test_how_long_a_poll_takes_is_measured(tmp_path: Path, workload, settings, record_ms, reported) -> None:
    run = run_of(tmp_path / "run", settings, workload=workload, record_ms=record_ms)
    said = advise(folder.read(run))
    assert len(said) == len(reported)
    assert all(words in one.sentence for one, words in zip(said, reported, strict=True))


def test_a_run_of_another_version_is_drawn_without_advice(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {"auto.offset.reset": ["latest"], "session.timeout.ms": None})
    for wrong in ({"topics": 7, "workload": 7}, {"topics": [7, {"replication_factor": "x"}]}):
        (run / "scenario.json").write_text(json.dumps({"scenario": wrong, "cluster": {"brokers": []}}))
        assert advise(folder.read(run)) == []


def the_run(path: Path, **wrong: Any) -> Path:
    """One of which there is nothing to say, but for what is ``wrong``: ``findings`` of its checks, its ``history``, its
    ``workload``, ``requests`` that brokers logged, how many records each partition holds."""
    checks = (Check("delivery", "at-least-once", Validity.VALID, 9, "", tuple(wrong.get("findings", ()))),)
    run = runs.write_run(path, runs.verdict("x", checks), wrong.get("history", runs.group_history()))
    scenario = json.loads((run / "scenario.json").read_text())
    scenario["scenario"]["workload"].update(wrong.get("workload", {}))
    (run / "scenario.json").write_text(json.dumps(scenario))
    held = [
        {"topic": "orders", "partition": number, "log_start": 5, "log_end": end}
        for number, end in enumerate(wrong.get("held", ()))
    ]
    (run / "history/partitions.json").write_text(json.dumps({"partitions": [*held, *wrong.get("renewed", ())]}))
    (run / "history/coordinator/requests.jsonl").write_text("\n".join(map(json.dumps, wrong.get("requests", ()))))
    return run


def told_of(run: Path) -> list[tuple[str, tuple[str, ...]]]:
    """The first words of each advice, and whom it is for."""
    return [(one.sentence.partition(":")[0], one.to) for one in advise(folder.read(run))]


@pytest.mark.parametrize(
    ("kind", "severity", "reported"),
    [
        (
            "avoidable-redelivery",
            Severity.PERMITTED,
            "2 records that had been processed were delivered again, although",
        ),
        (
            "avoidable-redelivery",
            Severity.VIOLATION,
            "2 records that had been processed were delivered again, although",
        ),
        ("avoidable-redelivery", Severity.NOTE, ""),
        ("redelivery", Severity.PERMITTED, ""),
        (
            "duplicate-effect",
            Severity.PERMITTED,
            "2 records had two effects. Make an effect replace the earlier effect of",
        ),
        (
            "duplicate-effect",
            Severity.VIOLATION,
            "2 records had two effects. Make an effect replace the earlier effect of",
        ),
        ("missing-effect", Severity.VIOLATION, ""),
    ],
)
def test_what_checks_found_is_told_with_its_remedy(
    tmp_path: Path, kind: str, severity: Severity, reported: str
) -> None:
    """Also what the promise permits: whoever did not promise to do it once may wish to."""
    said = told_of(the_run(tmp_path / "run", findings=[Finding(kind, severity, 2)]))
    assert [to for _, to in said] == [("the group",)] * bool(reported)
    assert all(sentence.startswith(reported) for sentence, _ in said)


@pytest.mark.parametrize(
    ("on_failure", "reported"), [("stop", ["a record that cannot be processed ends each member"]), ("park", [])]
)
def test_who_stops_at_what_nobody_can_process_is_told_to_park_it(
    tmp_path: Path, on_failure: str, reported: list[str]
) -> None:
    workload = {"type": "dead_letters", "on_failure": on_failure}
    said = told_of(the_run(tmp_path / "run", workload=workload))
    assert [sentence[: len(reported[0])] for sentence, _ in said] == reported


RENEWED = {"topic": "orders", "partition": 2, "log_start": 0, "log_end": 9_000, "renewed": {}}


@pytest.mark.parametrize(
    ("held", "renewed", "reported"),
    [
        ((400, 400, 1601), (), ["orders-2 has 1,601 records, but the partitions of its topic have 800 on average"]),
        ((400, 400, 1600), (), []),
        ((20, 20, 99), (), []),
        ((20, 20, 100), (), ["orders-2 has 100 records, but the partitions of its topic have 47 on average"]),
        ((400, 400, 400), (RENEWED,), []),
        ((400, 400, None), (), []),
        ((), (), []),
    ],
)
def test_a_partition_that_is_given_most_is_named(
    tmp_path: Path, held: Any, renewed: tuple[Any, ...], reported: list[str]
) -> None:
    said = told_of(the_run(tmp_path / "run", held=held, renewed=renewed))
    assert [(sentence.partition(" in the mean")[0], to) for sentence, to in said] == [
        (one, ("orders",)) for one in reported
    ]


def offsets_of(slot: int, at_s: float, name: str | None, *partitions: int, api: str = "TXN_OFFSET_COMMIT") -> Any:
    """A request of the member in this slot."""
    asked = {"request": {"transactionalId": name}, "offsets": [["orders", number, 7, None] for number in partitions]}
    return {"api": api, "slot": slot, "end_ns": runs.at(at_s), **asked}


SHARED = "several members use transactional.id a"
RANDOM = "transactional.id changes with a restart"


@pytest.mark.parametrize(
    ("requests", "fault", "reported"),
    [
        # Member 1 had its second life from 34.4 s on.
        (((0, 9, "a", 0, 1), (1, 9, "b", 2, 3), (1, 40, "b", 2, 3)), "kill", []),
        (((0, 9, "a", 0, 1), (1, 9, "a", 2, 3)), "kill", [(SHARED, ("member-0", "member-1"))]),
        (((0, 9, "a", 0, 1), (1, 9, "a", 2, 3)), "duplicate_instance", []),
        (((0, 9, "a", 0), (1, 9, "a", 0)), "kill", []),  # it is its partition's
        (((0, 9, "a", 0), (1, 9, "a", 1)), "kill", [(SHARED, ("member-0", "member-1"))]),
        (((1, 9, "b", 2, 3), (1, 34, "b", 2, 3), (1, 35, "c", 2, 3)), "kill", [(RANDOM, ("member-1",))]),
        (((1, 9, "b", 2, 3), (1, 35, "c", 2)), "kill", [(RANDOM, ("member-1",))]),
        (((1, 9, "b", 2, 3), (1, 10, "c", 2, 3)), "kill", []),  # both of one life
        (((1, 9, "b", 2, 3), (1, 10, "c", 2, 3), (1, 35, "d", 2, 3)), "kill", []),  # it may have used "b" later
        (((1, 9, "b", 2, 3), (1, 10, "c", 2, 3), (1, 35, "c", 2, 3)), "kill", []),
        (((1, 9, "b", 2), (1, 35, "c", 3)), "kill", []),  # they may be their partitions'
        (((0, 9, "a", 0, 1), (7, 9, "a", 2, 3), (0, 3, "a", 5)), "kill", []),  # of nobody who is known
        (((0, 9, None, 0, 1), (1, 9, None, 2, 3)), "kill", []),
    ],
)
def test_a_transactional_id_is_one_members_alone_in_all_its_lives_or_one_partitions(
    tmp_path: Path, requests: Any, fault: str, reported: Any
) -> None:
    logged = [offsets_of(*one) for one in requests]
    logged.append(offsets_of(3, 9, "a", 8, 9, api="OFFSET_FETCH"))
    run = the_run(tmp_path / "run", requests=logged, history=hit_by(fault))
    assert told_of(run) == reported


def test_of_transactions_that_brokers_do_not_show_nothing_is_said(tmp_path: Path) -> None:
    shared = [offsets_of(slot, 9, "a", 0, 1) for slot in (0, 1)]
    run = the_run(tmp_path / "run", requests=shared)
    log = run / "history/coordinator/requests.jsonl"
    log.write_text(log.read_text().replace('"offsets"', '"off') + '\n7\n{"api": "TXN_OFFSET_COMMIT"')
    assert told_of(run) == []
    log.unlink()
    assert told_of(run) == []


def upgraded(*lives: tuple[int, float, float, str, str]) -> runs.History:
    """Members that were there from when to when, with which protocol and assignors."""
    history = runs.History()
    for number, (member, begin_s, end_s, protocol, names) in enumerate(lives):
        config = {**GOOD, "partition.assignment.strategy": names}
        detail = {"member": member, "protocol": protocol, "config": config}
        history.add("started", f"member-{member}.{number}", begin_s, detail=detail)
        if end_s:
            history.add("ended", f"member-{member}.{number}", end_s, end_s, detail={"how": "closed"})
    return history


@pytest.mark.parametrize(
    ("lives", "late"),
    [
        ([(0, 1, 0, "eager", "range"), (1, 5, 0, "cooperative", "cooperative-sticky")], ("member-1",)),
        ([(0, 5, 0, "eager", "range"), (1, 1, 0, "cooperative", "cooperative-sticky")], ("member-0",)),
        ([(0, 1, 0, "eager", "range"), (1, 5, 0, "eager", "cooperative-sticky, range")], ()),
        ([(0, 1, 4, "eager", "range"), (1, 5, 0, "cooperative", "cooperative-sticky")], ()),
        ([(0, 1, 0, "eager", "range"), (0, 5, 0, "cooperative", "cooperative-sticky")], ()),  # it came again
        ([(0, 1, 0, "eager", "range"), (1, 5, 0, "consumer", "cooperative-sticky")], ()),
        ([(0, 1, 0, "eager", ""), (1, 5, 0, "cooperative", "cooperative-sticky")], ()),  # it did not say
    ],
)
def test_members_that_are_there_at_once_have_an_assignor_in_common(tmp_path: Path, lives: Any, late: Any) -> None:
    run = the_run(tmp_path / "run", history=upgraded(*lives))
    said = [one for one in advise(folder.read(run)) if "without a common assignor" in one.sentence]
    assert [one.to for one in said] == [late] * bool(late)
    assert all("Upgrade in two rolling bounces" in one.sentence for one in said)


@pytest.mark.parametrize(
    ("details", "to"),
    [
        ([{"client": "confluent-kafka", "idempotent": False}] * 2, [("member-3",)]),
        ([{"client": "confluent-kafka", "idempotent": True}], []),
        ([{"client": "another"}], []),
    ],
)
def test_a_program_is_told_which_of_its_producers_may_write_twice(tmp_path: Path, details: Any, to: Any) -> None:
    history = runs.group_history()
    for life, detail in enumerate(details):
        history.add("producing", f"member-3.{life}", 4, detail=detail)
    said = advise(folder.read(the_run(tmp_path / "run", history=history)))
    assert [one.to for one in said] == to
    assert all("Set enable.idempotence to true" in one.sentence for one in said)
