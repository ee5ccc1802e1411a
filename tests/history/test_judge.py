"""The judge: promises turn anomalies into verdicts, doubt never passes, and every sentence can be checked by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.judge import judge
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Bounds, Facts
from fencepost.errors import ScenarioError
from fencepost.model import Anomaly, Check, Severity, Validity, Verdict
from history.builder import HistoryBuilder

DEFAULT = [{"type": name} for name in ("delivery", "order", "ownership", "progress")]
PROCESSING = [{"type": "ownership", "of": "processing"}]


def builder(folder: Path, promises: Any = DEFAULT, **options: Any) -> HistoryBuilder:
    return HistoryBuilder(folder, promises=promises, **options)


def good_life(h: HistoryBuilder) -> None:
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.process(range(10), 2)
    a.commit(10, 3)
    a.close(39)


def lossy_life(h: HistoryBuilder) -> None:
    """Commits before it processes, and is killed."""
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(4), 2)
    rows = a.poll([4, 5, 6], 3)
    a.commit(7, 3.1, generation=9)
    rows[0].begin(3.2)
    a.die(3.3)
    a.evicted(9)
    b.assigned(10)
    b.process(range(7, 10), 11)
    b.commit(10, 12)
    b.close(39)


def zombie_life(h: HistoryBuilder) -> None:
    """Frozen past its session with records in hand, which it finishes when it wakes."""
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    rows = a.poll(range(4), 2)
    a.pause(3, 12, expect="fenced")
    a.evicted(9)
    b.assigned(10)
    b.process(range(10), 11)
    b.commit(10, 11.5)
    for n, row in enumerate(rows):
        row.begin(12.001 + n / 1000).end(12.0015 + n / 1000)
    a.lost(12.1)
    a.close(38)
    b.close(39)


def check(verdict: Verdict, name: str) -> Check:
    return next(c for c in verdict.checks if c.check == name)


def test_a_good_life_is_valid_and_says_how_much_was_judged(tmp_path: Path) -> None:
    h = builder(tmp_path)
    good_life(h)
    verdict = judge(h.seal(), oracle.judge)
    assert verdict.validity == Validity.VALID
    assert {c.check: c.facts_judged for c in verdict.checks} == {
        "faults": 0,
        "history": 10,
        "delivery": 10,
        "order": 10,
        "ownership": 1,
        "progress": 1,
    }
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


def test_a_loss_is_told_as_a_reader_can_check_it(tmp_path: Path) -> None:
    h = builder(tmp_path)
    lossy_life(h)
    verdict = judge(h.seal(), oracle.judge)
    assert verdict.validity == Validity.INVALID
    delivery = check(verdict, "delivery")
    lost = [f for f in delivery.findings if f.severity == Severity.VIOLATION]
    assert [(f.kind, f.count, f.reason) for f in lost] == [
        ("unseen", 2, "committed-unprocessed, in hand when its owner died"),
        ("unseen", 1, "in-doubt, in hand when its owner died"),
    ]
    assert lost[1].examples[0]["sentence"] == (
        "Offset 4 of orders-0 was committed past (7, by member-0.1, generation 9, 3.100 s) while member-0.1 had begun "
        "but not finished it; member-0.1 was killed at 3.300 s; nobody processed it."
    )
    assert "3.100 s: member-0.1 committed 7 (ok)" in lost[1].examples[0]["witnesses"]
    assert delivery.reason.startswith("unseen: 2 records of orders-0 (offsets 5 to 6) were committed past (7, by")


def test_at_most_once_permits_what_was_in_hand_and_no_more(tmp_path: Path) -> None:
    h = builder(tmp_path, [{"type": "delivery", "level": "at-most-once"}])
    lossy_life(h)
    assert judge(h.seal(), oracle.judge).validity == Validity.VALID


def test_a_zombie_is_permitted_by_assignment_and_not_by_processing(tmp_path: Path) -> None:
    for promises, expected in ((DEFAULT, Validity.VALID), (PROCESSING, Validity.INVALID)):
        h = builder(tmp_path, promises)
        zombie_life(h)
        verdict = judge(h.seal(), oracle.judge)
        assert verdict.validity == expected
        found = {f.kind: f.severity for f in check(verdict, "ownership").findings}
        assert found["assignment-overlap"] == Severity.PERMITTED
        assert found["stale-backlog"] == (Severity.VIOLATION if promises is PROCESSING else Severity.PERMITTED)


def test_what_nobody_promised_is_noted(tmp_path: Path) -> None:
    h = builder(tmp_path, PROCESSING)
    lossy_life(h)
    verdict = judge(h.seal(), oracle.judge)
    other = check(verdict, "other")
    assert (verdict.validity, other.validity) == (Validity.VALID, Validity.VALID)
    assert {(f.kind, f.severity) for f in other.findings} == {("unseen", Severity.NOTE)}


def test_too_few_facts_are_unknown(tmp_path: Path) -> None:
    h = builder(tmp_path, min_records=100)
    good_life(h)
    verdict = judge(h.seal(), oracle.judge)
    assert verdict.validity == Validity.UNKNOWN
    assert check(verdict, "delivery").reason.startswith("10 committed records were judged, and 90 are needed")


def test_an_empty_run_is_unknown(tmp_path: Path) -> None:
    verdict = judge(builder(tmp_path).seal(), oracle.judge)
    assert {c.check: c.validity for c in verdict.checks if c.check != "faults"} == dict.fromkeys(
        ("history", "delivery", "order", "ownership", "progress"), Validity.UNKNOWN
    )


@pytest.mark.parametrize(
    ("name", "hurt"),
    [
        ("history/events.parquet", {"delivery", "order", "ownership", "progress"}),
        ("history/delivered/member-0.1.parquet", {"delivery", "order", "ownership", "progress"}),
        ("history/log/audit.parquet", {"delivery", "order", "progress"}),
        ("history/produced", {"delivery", "progress"}),
        ("history/coordinator/offsets.jsonl", {"delivery", "ownership", "progress"}),
        ("history/coordinator/requests.jsonl", set()),
        ("history/host.jsonl", {"progress"}),
        ("history/partitions.json", {"delivery", "order", "ownership", "progress"}),
        ("plan.json", {"delivery", "order", "ownership", "progress"}),
        ("history/seal.json", {"delivery", "order", "ownership", "progress"}),
        ("scenario.json", set()),
    ],
)
@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_damage_makes_unknown_what_depends_on_it_and_names_the_file(
    tmp_path: Path, name: str, hurt: set[str], how: str
) -> None:
    h = builder(tmp_path)
    lossy_life(h)
    run = h.seal(without=[name])
    if how == "damaged" and name != "history/produced":
        (run / name).write_bytes(b"PAR1 or { but no more")
    verdict = judge(run, oracle.judge)
    unknown = {c.check for c in verdict.checks if c.validity == Validity.UNKNOWN}
    assert unknown == {"history", *hurt}
    named = name.removesuffix("/audit.parquet") if how == "missing" else name
    assert named in check(verdict, "history").reason
    assert all(named in c.reason for c in verdict.checks if c.check in hurt)


def test_a_hole_in_a_history_is_never_loss(tmp_path: Path) -> None:
    h = builder(tmp_path)
    good_life(h)
    del h.members[0].rows[3]
    verdict = judge(h.seal(), oracle.judge)
    assert verdict.validity == Validity.UNKNOWN
    assert (
        "history/delivered/member-0.1.parquet: 1 deliveries of orders-0 are missing"
        in check(verdict, "delivery").reason
    )


def test_a_finder_that_crashes_leaves_the_check_of_the_faults(tmp_path: Path) -> None:
    def broken(run: Path, tables: Tables, bounds: Bounds) -> tuple[list[Anomaly], Facts]:
        raise MemoryError("no room")

    h = builder(tmp_path)
    good_life(h)
    verdict = judge(h.seal(), broken)
    assert {c.check for c in verdict.checks if c.validity == Validity.VALID} == {"faults"}
    assert check(verdict, "order").reason == "the records could not be judged: MemoryError: no room"


def test_a_kind_that_failed_leaves_the_other_checks(tmp_path: Path) -> None:
    def half(run: Path, tables: Tables, bounds: Bounds) -> tuple[list[Anomaly], Facts]:
        found, facts = oracle.judge(run, tables, bounds)
        return found, Facts(**{**vars(facts), "failed": {"key-order": "the rule failed"}})

    h = builder(tmp_path)
    good_life(h)
    verdict = judge(h.seal(), half)
    assert {c.check for c in verdict.checks if c.validity == Validity.UNKNOWN} == {"order"}


def test_a_stop_while_the_host_stood_still_is_unknown(tmp_path: Path) -> None:
    for stalled_s, expected in ((0.5, Validity.INVALID), (10, Validity.UNKNOWN)):
        h = builder(tmp_path)
        good_life(h)
        h.write(5)
        h.stall(30, 30 + stalled_s)
        verdict = judge(h.seal(), oracle.judge)
        assert check(verdict, "progress").validity == expected


def test_the_strictest_progress_sets_the_bound(tmp_path: Path) -> None:
    for within_s, expected in ((30, Validity.VALID), (5, Validity.INVALID)):
        h = builder(tmp_path, [{"type": "progress", "within_s": within_s}])
        h.write(10)
        a = h.member(0)
        a.assigned(1)
        a.process(range(10), 10)
        a.commit(10, 12)
        a.close(39)
        assert judge(h.seal(), oracle.judge).validity == expected


def test_a_run_that_never_drained_has_no_progress_to_judge(tmp_path: Path) -> None:
    h = builder(tmp_path)
    del h.phases["drain"]
    good_life(h)
    progress = check(judge(h.seal(), oracle.judge), "progress")
    assert (progress.validity, progress.facts_judged) == (Validity.UNKNOWN, 0)
    assert "the run did not get through its drain" in progress.reason


def test_only_some_checks_are_made_when_asked(tmp_path: Path) -> None:
    h = builder(tmp_path)
    lossy_life(h)
    run = h.seal()
    assert [c.check for c in judge(run, oracle.judge, only=["order", "faults"]).checks] == ["faults", "order"]
    with pytest.raises(ScenarioError, match=r"there is no check 'odrer' in this run; it has faults, history, delivery"):
        judge(run, oracle.judge, only=["odrer"])


def test_a_promise_that_this_version_does_not_know_is_damage_of_the_scenario(tmp_path: Path) -> None:
    h = builder(tmp_path, [{"type": "delivery"}, {"type": "fairness"}])
    good_life(h)
    verdict = judge(h.seal(), oracle.judge)
    assert verdict.validity == Validity.UNKNOWN
    assert "there is no promise 'fairness'" in check(verdict, "history").reason


def test_counts_are_never_capped_and_examples_are(tmp_path: Path) -> None:
    h = builder(tmp_path, partitions=15)
    a = h.member(0)
    for tp in range(15):
        h.write(tp + 1, tp)
        a.assigned(1 + tp / 100, tp)
        a.commit(tp + 1, 3, tp)
    a.close(39)
    (finding,) = check(judge(h.seal(), oracle.judge), "delivery").findings
    assert finding.count == sum(range(1, 16))
    assert [e["count"] for e in finding.examples] == list(range(15, 5, -1))


def test_the_verdict_holds_faults_rebalances_and_measures(tmp_path: Path) -> None:
    h = builder(tmp_path, classic=True)
    zombie_life(h)
    verdict = judge(h.seal(), oracle.judge)
    (fault,) = verdict.faults
    assert (fault["fault"], fault["begun_s"], fault["proven_s"], fault["healed_s"]) == ("pause", 3.0, 3.0, 12.01)
    assert (fault["took_effect"], fault["expect"], fault["reached"]) == (True, "fenced", True)
    assert [r["generation"] for r in verdict.rebalances] == sorted({r["generation"] for r in verdict.rebalances})
    assert verdict.rebalances[0]["members"] == ["member-0.1"]
    assert verdict.measures["records_processed"] == 14
    assert verdict.measures["recovery_s"] == 0.0
