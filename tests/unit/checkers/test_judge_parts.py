"""What the judge makes of anomalies, damage and promises, each step by itself, to the word."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from history.builder import HistoryBuilder

from fencepost.checkers import Delivery, Progress, Recovers, oracle
from fencepost.checkers import judge as judging
from fencepost.checkers.counts import Bounds, JudgedCounts
from fencepost.checkers.explanations import EXAMPLES_MAX, example
from fencepost.checkers.group_rules import progress
from fencepost.checkers.metrics import Deal, deals, rebalances
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import NS, AssignmentChange, Damage, PerformedStep, Rebalance
from fencepost.model import Anomaly, Check, Finding, Severity, Validity
from fencepost.model.clients import BLACK_BOX

TABLES = Tables(Path())
LOST = Anomaly("lost-write", "orders", 1, ("producer-0",), "", "", 5, 9, 100, 200, 3)
HOLE = Anomaly("history-incomplete", "orders", 1, ("a.1",), "hole", "", 5, 5, 100, 200, 1234)


def named(*files: str) -> tuple[Mapping[str, Any], ...]:
    return tuple({"sentence": file, "witnesses": []} for file in files)


def test_damaged_files_are_counted_and_the_first_ones_are_named() -> None:
    files = [Damage("log", f"history/log/{number}.parquet", "torn") for number in range(EXAMPLES_MAX + 2)]
    broken_off = [Damage("phases", "", "the drain was interrupted"), Damage("phases", "", "Ctrl-C")]
    reported = [str(file) for file in files]
    findings = (Finding("damaged-file", Severity.NOTE, len(files), "", named(*reported[:EXAMPLES_MAX])),)
    for damage, reason in ((files, reported[0]), ([*files, *broken_off], "the drain was interrupted: Ctrl-C")):
        found = judging._history(TABLES, [], JudgedCounts(delivered=7), damage, "it crashed")
        reason = reason if damage is not files else "it crashed"
        assert found == Check("history", "the history is whole", Validity.UNKNOWN, 7, reason, findings)


@pytest.mark.parametrize(
    ("delivered", "validity", "reason"),
    [(1, "valid", "every part of the history is there and has no hole"), (0, "unknown", "nothing was delivered")],
)
def test_a_history_is_whole_in_which_something_was_delivered(delivered: int, validity: str, reason: str) -> None:
    found = judging._history(TABLES, [LOST], JudgedCounts(delivered=delivered, judged=9), [], "")
    assert found == Check("history", "the history is whole", Validity(validity), delivered, reason)


@pytest.mark.parametrize(
    ("judged", "reason"), [(9, "every part of the history is there and has no hole"), (0, "nothing was committed")]
)
def test_of_black_boxes_something_must_have_been_committed(judged: int, reason: str) -> None:
    tables = Tables(Path(), {"scenario": {"group": {"client": BLACK_BOX}}})
    found = judging._history(tables, [], JudgedCounts(delivered=7, judged=judged), [], "")
    assert (found.facts_judged, found.reason) == (judged, reason)


def test_a_hole_is_a_note_and_damage_of_the_file_of_its_member() -> None:
    damage = judging._holes([LOST, HOLE])
    assert damage == [Damage("delivered", "history/delivered/a.1.parquet", "1,234 deliveries of orders-1 are missing")]
    found = judging._history(TABLES, [LOST, HOLE], JudgedCounts(delivered=7), damage, "")
    hole = Finding("history-incomplete", Severity.NOTE, 1234, "hole", (example(TABLES, HOLE),))
    file = Finding("damaged-file", Severity.NOTE, 1, "", named(str(damage[0])))
    assert found.findings == (hole, file)


def test_what_nobody_promised_is_told_apart() -> None:
    (found,) = judging._unpromised(TABLES, [LOST, HOLE], [Progress()])
    lost = Finding("lost-write", Severity.NOTE, 3, "", (example(TABLES, LOST),))
    reported = "seen, and no promise covers it"
    assert found == Check("other", "nothing was promised", Validity.VALID, 3, reported, (lost,))
    assert judging._unpromised(TABLES, [LOST, HOLE], [Progress(), Delivery()]) == []


def anomaly(kind: str, count: int, from_ns: int, cause: str = "", excuse: str = "") -> Anomaly:
    return Anomaly(kind, "orders", 1, (), cause, excuse, from_ns=from_ns, count=count)


def test_findings_are_grouped_by_what_is_said_of_them_and_the_worst_come_first() -> None:
    lost, more, later = anomaly("lost-write", 2, 50), anomaly("lost-write", 3, 60), anomaly("lost-write", 2, 70)
    zombie, permitted = anomaly("rewind", 9, 10, "seek", "zombie"), anomaly("phantom", 1, 10)
    judged = [
        (zombie, Severity.NOTE, ""),
        (permitted, Severity.PERMITTED, ""),
        (later, Severity.VIOLATION, ""),
        (lost, Severity.VIOLATION, ""),
        (more, Severity.VIOLATION, ""),
        (lost, Severity.NOTE, "a file is torn"),
    ]
    found = list(judging._findings(TABLES, judged, "the promise"))
    examples = [tuple(example(TABLES, one) for one in those) for those in ((more, lost, later), (permitted,))]
    assert found == [
        Finding("lost-write", Severity.VIOLATION, 7, "", examples[0]),
        Finding("phantom", Severity.PERMITTED, 1, "permitted by the promise", examples[1]),
        Finding("rewind", Severity.NOTE, 9, "seek, zombie", (example(TABLES, zombie),)),
        Finding("lost-write", Severity.NOTE, 2, "a file is torn", (example(TABLES, lost),)),
    ]
    assert [f.reason for f in judging._findings(TABLES, judged[1:2], "")] == [""]


def test_the_violation_with_the_greatest_count_is_the_reason() -> None:
    def finding(kind: str, count: int, *sentences: str) -> Finding:
        return Finding(kind, Severity.VIOLATION, count, "", named(*sentences))

    assert judging._broken([finding("one", 2, "first", "second"), finding("other", 1, "third")]) == "one: first"
    assert judging._broken([finding("one", 2, "first"), finding("other", 3)]) == "other: other"


@pytest.mark.parametrize(
    ("promises", "bounds"),
    [
        ([], Bounds()),
        ([Delivery()], Bounds()),
        ([Progress(within_s=20), Progress(within_s=7.5)], Bounds(stuck_ns=round(7.5 * NS))),
        ([SimpleNamespace(recovers_within_s=4), SimpleNamespace(recovers_within_s=None)], Bounds(recovers_ns=4 * NS)),
        ([Progress(recovers_within_s=4), Recovers(first_record_within_s=3)], Bounds(recovers_ns=3 * NS)),
        ([Recovers(lag_normal_within_s=0.5)], Bounds(catches_up_ns=NS // 2)),
        ([Recovers(duplicates_per_disruption=0)], Bounds(done_again=0)),
    ],
)
def test_the_strictest_promise_sets_a_bound(promises: Sequence[Any], bounds: Bounds) -> None:
    assert judging._bounds(promises) == bounds


def test_a_round_of_nobody_deals_nothing() -> None:
    rounds = (Rebalance(0, 1, 10, 20), Rebalance(0, 2, 30, 40, ("a.1", "b.1")))
    given = (AssignmentChange(3, 0, 45, 0, "id", "a.1"), AssignmentChange(4, 1, 46, 0, "id", "a.1"))
    assert deals(Tables(Path(), rounds=rounds, given=given)) == [Deal(0, 0, 0), Deal(0, 2, 0)]


def test_a_promise_that_cannot_be_read_is_damage_and_so_is_none_at_all() -> None:
    def told(**asked: Any) -> tuple[list[Any], list[Damage]]:
        return judging._promises(Tables(Path(), {"scenario": asked}))

    none = Damage("promises", "scenario.json", "it names no promise, so there is nothing to judge")
    assert told(name="x") == told(name="x", promises=[]) == ([], [none])
    assert told() == ([], [])
    found, (damage,) = told(promises=[{"type": "delivery"}, {"type": "fairness"}])
    assert (found, damage.part, damage.file) == ([Delivery()], "promises", "scenario.json")
    assert damage.what.startswith("there is no promise 'fairness'")
    assert told(promises=[{"type": "fairness"}]) == ([], [damage])


def test_a_rebalance_is_told_with_when_why_and_what_it_dealt() -> None:
    rounds = (Rebalance(7, 4, 2 * NS, 5 * NS // 2, ("a.1",), "joined"),)
    steps = (PerformedStep(3, "pause", begun_ns=2 * NS), PerformedStep(5, "kill", begun_ns=2 * NS + 1))
    (reported,) = rebalances(Tables(Path(), origin_ns=NS, rounds=rounds, steps=steps))
    moments = {"begin_ns": 2 * NS, "end_ns": 5 * NS // 2, "begin_s": 1.0, "took_s": 0.5}
    dealt = {"moved": 0, "most": 0, "least": 0, "step": 3}
    assert reported == {"generation": 4, "term": 7, **moments, "members": ["a.1"], "reason": "joined", **dealt}


@pytest.mark.parametrize("promise", ["progress", "outside"])
def test_a_partition_may_be_nobodys_for_as_long_as_progress_is_promised_within(promise: str) -> None:
    promises = [{"type": promise, "within_s": 7}, {"type": "delivery", "within_s": 99}]
    assert progress._within_ns(Tables(Path(), {"scenario": {"promises": promises}})) == 7 * NS


def test_a_verdict_bears_the_name_of_its_scenario(tmp_path: Path) -> None:
    run = HistoryBuilder(tmp_path, 1).seal()
    reported = json.loads((run / "scenario.json").read_text())
    assert reported["scenario"]["name"] == judging.judge(run, oracle.detect).scenario != run.name
