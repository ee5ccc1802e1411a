"""The judge: promises turn anomalies into verdicts, doubt never passes, and every sentence can be checked by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost import judging
from fencepost.checkers import certainty, group_rules, oracle
from fencepost.checkers.counts import Bounds, JudgedCounts
from fencepost.checkers.detections import Detection
from fencepost.checkers.judge import Detector, judge
from fencepost.checkers.spark.detector import find_here
from fencepost.checkers.spark.session import Spark
from fencepost.checkers.tables import Tables, load
from fencepost.checkers.tables.rows import Damage
from fencepost.errors import ProvisionError, ScenarioError
from fencepost.evidence.sealing.seal import seal
from fencepost.history.run_folder import RunFolder
from fencepost.model import Anomaly, Check, Severity, Validity, Verdict
from history.builder import HistoryBuilder, MemberTeller, ns

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
    verdict = judge(h.seal(), oracle.detect)
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
    verdict = judge(h.seal(), oracle.detect)
    assert verdict.validity == Validity.INVALID
    delivery = check(verdict, "delivery")
    lost = [f for f in delivery.findings if f.severity == Severity.VIOLATION]
    assert [(f.kind, f.count, f.reason) for f in lost] == [
        ("unseen", 2, "committed-unprocessed, in hand when its owner died"),
        ("unseen", 1, "in-doubt, in hand when its owner died"),
    ]
    assert lost[1].examples[0]["sentence"] == (
        "member-0.1 committed offset 7 (generation 9, 3.100 s), past offset 4 of orders-0, which it had begun but not "
        "finished; member-0.1 was killed at 3.300 s; no member processed it."
    )
    assert "3.100 s: member-0.1 committed 7 (ok)" in lost[1].examples[0]["witnesses"]
    assert delivery.reason.startswith(
        "unseen: member-0.1 committed offset 7 (generation 9, 3.100 s), past 2 records of orders-0 (offsets 5 to 6)"
    )


def test_at_most_once_permits_what_was_in_hand_and_no_more(tmp_path: Path) -> None:
    h = builder(tmp_path, [{"type": "delivery", "level": "at-most-once"}])
    lossy_life(h)
    assert judge(h.seal(), oracle.detect).validity == Validity.VALID


def test_a_zombie_is_permitted_by_assignment_and_not_by_processing(tmp_path: Path) -> None:
    for promises, expected in ((DEFAULT, Validity.VALID), (PROCESSING, Validity.INVALID)):
        h = builder(tmp_path, promises)
        zombie_life(h)
        verdict = judge(h.seal(), oracle.detect)
        assert verdict.validity == expected
        found = {f.kind: f.severity for f in check(verdict, "ownership").findings}
        assert found["assignment-overlap"] == Severity.PERMITTED
        assert found["work-after-reassignment"] == (
            Severity.VIOLATION if promises is PROCESSING else Severity.PERMITTED
        )


def test_what_nobody_promised_is_noted(tmp_path: Path) -> None:
    h = builder(tmp_path, PROCESSING)
    lossy_life(h)
    verdict = judge(h.seal(), oracle.detect)
    other = check(verdict, "other")
    assert (verdict.validity, other.validity) == (Validity.VALID, Validity.VALID)
    assert {(f.kind, f.severity) for f in other.findings} == {
        ("unseen", Severity.NOTE),
        ("commit-ahead", Severity.NOTE),
    }


def test_too_few_facts_are_unknown(tmp_path: Path) -> None:
    h = builder(tmp_path, min_records=100)
    good_life(h)
    verdict = judge(h.seal(), oracle.detect)
    assert verdict.validity == Validity.UNKNOWN
    assert check(verdict, "delivery").reason.startswith("10 committed records were judged, and 90 are needed")


def test_an_empty_run_is_unknown(tmp_path: Path) -> None:
    verdict = judge(builder(tmp_path).seal(), oracle.detect)
    assert {c.check: c.validity for c in verdict.checks if c.check != "faults"} == dict.fromkeys(
        ("history", "delivery", "order", "ownership", "progress"), Validity.UNKNOWN
    )


@pytest.mark.parametrize(
    ("name", "hurt"),  # the loss itself is certain where "delivery" is not hurt: then it is invalid
    [
        ("history/events.parquet", {"faults", "delivery", "order", "ownership", "progress"}),
        ("history/delivered/member-0.1.parquet", {"delivery", "order", "ownership", "progress"}),
        ("history/log/audit.parquet", {"delivery", "order", "progress"}),
        ("history/produced", {"progress"}),
        ("history/coordinator/offsets.jsonl", {"delivery", "ownership", "progress"}),
        ("history/coordinator/requests.jsonl", {"ownership", "progress"}),
        ("history/host.jsonl", {"progress"}),
        ("history/partitions.json", {"delivery", "order", "ownership", "progress"}),
        ("plan.json", {"faults", "order", "ownership", "progress"}),
        ("history/seal.json", {"faults", "delivery", "order", "ownership", "progress"}),
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
    verdict = judge(run, oracle.detect)
    unknown = {c.check for c in verdict.checks if c.validity == Validity.UNKNOWN}
    assert unknown == {"history", *hurt}
    loss = {c.check for c in verdict.checks if c.validity == Validity.INVALID}
    assert loss == {"delivery"} - hurt if name != "scenario.json" else not loss
    named = name.removesuffix("/audit.parquet") if how == "missing" else name
    assert named in check(verdict, "history").reason
    assert all(named in c.reason for c in verdict.checks if c.check in hurt)


def test_a_hole_in_a_history_is_never_loss(tmp_path: Path) -> None:
    h = builder(tmp_path)
    good_life(h)
    del h.members[0].rows[3]
    verdict = judge(h.seal(), oracle.detect)
    assert verdict.validity == Validity.UNKNOWN
    assert (
        "history/delivered/member-0.1.parquet: 1 deliveries of orders-0 are missing"
        in check(verdict, "delivery").reason
    )


def test_a_finder_that_crashes_leaves_the_check_of_the_faults(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(run: Path, tables: Tables, bounds: Bounds) -> tuple[list[Anomaly], JudgedCounts]:
        raise MemoryError("no room")

    h = builder(tmp_path)
    good_life(h)
    run = h.seal()
    verdict = judge(run, broken)
    assert f"the detector failed on {run}" in caplog.text
    assert {c.check for c in verdict.checks if c.validity == Validity.VALID} == {"faults"}
    assert check(verdict, "order").reason == "the records could not be judged: MemoryError: no room"


def test_without_spark_nothing_is_judged_and_nothing_stored(tmp_path: Path) -> None:
    h = builder(tmp_path)
    good_life(h)
    run = h.seal()
    RunFolder(run).write_verdict(judge(run, oracle.detect))
    stored = (run / "verdict.json").read_bytes()
    reported = (
        r"no Spark answers at sc://127\.0\.0\.1:1 .*Nothing was judged\. When Spark works, run: fencepost check /"
    )
    with Spark.start(remote="sc://127.0.0.1:1") as spark, pytest.raises(ProvisionError, match=reported):
        judging.judge(run, spark)
    assert (run / "verdict.json").read_bytes() == stored


def test_a_kind_that_failed_leaves_the_other_checks(tmp_path: Path) -> None:
    def half(run: Path, tables: Tables, bounds: Bounds) -> tuple[list[Anomaly], JudgedCounts]:
        found, facts = oracle.detect(run, tables, bounds)
        return found, JudgedCounts(**{**vars(facts), "failed": {"key-order": "the rule failed"}})

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
        verdict = judge(h.seal(), oracle.detect)
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
        assert judge(h.seal(), oracle.detect).validity == expected


def test_a_run_that_never_drained_has_no_progress_to_judge(tmp_path: Path) -> None:
    h = builder(tmp_path)
    del h.phases["drain"]
    good_life(h)
    progress = check(judge(h.seal(), oracle.detect), "progress")
    assert (progress.validity, progress.facts_judged) == (Validity.UNKNOWN, 0)
    assert "the run did not complete its drain" in progress.reason


def test_only_some_checks_are_made_when_asked(tmp_path: Path) -> None:
    h = builder(tmp_path)
    lossy_life(h)
    run = h.seal()
    assert [c.check for c in judge(run, oracle.detect, only=["order", "faults"]).checks] == ["faults", "order"]
    with pytest.raises(ScenarioError, match=r"there is no check 'odrer' in this run; it has faults, history, delivery"):
        judge(run, oracle.detect, only=["odrer"])


def test_a_promise_that_this_version_does_not_know_is_damage_of_the_scenario(tmp_path: Path) -> None:
    h = builder(tmp_path, [{"type": "delivery"}, {"type": "fairness"}])
    good_life(h)
    verdict = judge(h.seal(), oracle.detect)
    assert verdict.validity == Validity.UNKNOWN
    assert check(verdict, "history").reason.startswith("scenario.json: there is no promise 'fairness'")


def test_a_scenario_without_a_promise_is_damaged_too(tmp_path: Path) -> None:
    h = builder(tmp_path, [])
    good_life(h)
    verdict = judge(h.seal(), oracle.detect)
    assert verdict.validity == Validity.UNKNOWN
    assert check(verdict, "history").reason == "scenario.json: it names no promise, so there is nothing to judge"


def test_counts_are_never_capped_and_examples_are(tmp_path: Path) -> None:
    h = builder(tmp_path, partitions=15)
    a = h.member(0)
    for tp in range(15):
        h.write(tp + 1, tp)
        a.assigned(1 + tp / 100, tp)
        a.commit(tp + 1, 3, tp)
    a.close(39)
    (finding,) = check(judge(h.seal(), oracle.detect), "delivery").findings
    assert finding.count == sum(range(1, 16))
    assert [e["count"] for e in finding.examples] == list(range(15, 5, -1))


def test_the_verdict_holds_faults_rebalances_and_measures(tmp_path: Path) -> None:
    h = builder(tmp_path, classic=True)
    zombie_life(h)
    verdict = judge(h.seal(), oracle.detect)
    (fault,) = verdict.faults
    assert (fault["fault"], fault["begun_s"], fault["proven_s"], fault["healed_s"]) == ("pause", 3.0, 3.0, 12.01)
    assert (fault["took_effect"], fault["expect"], fault["reached"]) == (True, "fenced", True)
    assert [r["generation"] for r in verdict.rebalances] == sorted({r["generation"] for r in verdict.rebalances})
    assert verdict.rebalances[0]["members"] == ["member-0.1"]
    assert verdict.measures["records_processed"] == 14
    assert verdict.measures["recovery_s"] == 0.0


def test_a_rebalance_is_told_with_its_moments(tmp_path: Path) -> None:
    h = builder(tmp_path, classic=True)
    a = h.member(0)
    h.join(a, 1.2504)
    h.round(2.00061, (a, [0]), generation=1)
    (reported,) = judge(h.seal(), oracle.detect).rebalances
    assert (reported["begin_ns"], reported["end_ns"]) == (ns(1.2504), ns(2.00061))
    assert (reported["begin_s"], reported["took_s"]) == (1.25, 0.75)


@pytest.mark.parametrize(
    ("changed", "seed"),
    [({}, 7), ({"scenario.json": None}, 5), ({"scenario.json": None, "plan.json": None}, 0)],
)
def test_the_seed_is_that_of_the_scenario_else_of_the_plan(tmp_path: Path, changed: dict[str, None], seed: int) -> None:
    h = builder(tmp_path)
    good_life(h)
    run = h.seal()
    for name, number in (("scenario.json", 7), ("plan.json", 5)):
        reported = json.loads((run / name).read_text(encoding="utf-8"))
        reported.update(changed.get(name, {"seed": number}) or {"seed": 0})
        (run / name).write_text(json.dumps(reported), encoding="utf-8")
    assert judge(run, oracle.detect).seed == seed


@pytest.mark.parametrize("classic", [True, False])
def test_a_rebalance_says_what_it_dealt(tmp_path: Path, classic: bool) -> None:
    h = builder(tmp_path, classic=classic, partitions=8)
    a, b, c, again = (h.member(number) for number in (0, 1, 2, 0))
    for number, has in enumerate(
        (
            [(a, range(8))],
            [(a, range(4)), (b, range(4, 8))],
            [(a, range(3)), (b, range(4, 7)), (c, [])],  # two are on their way, as in a cooperative rebalance
            [(a, range(3)), (b, range(4, 7)), (c, (3, 7))],
            [(b, range(4)), (c, range(4, 8))],
            [(again, range(4)), (c, range(4, 8))],
        ),
        start=1,
    ):
        h.round(number, *has, generation=number)
    verdict = judge(h.seal(), oracle.detect)
    dealt = [(r["moved"], r["most"], r["least"]) for r in verdict.rebalances]
    assert dealt == [(0, 8, 8), (4, 4, 4), (0, 3, 0), (2, 3, 2), (7, 4, 4), (4, 4, 4)]
    assert verdict.measures["partitions_moved"] == 17


@pytest.mark.parametrize("next_one", [(), ("b",)])
def test_who_leaves_had_its_partitions_until_somebody_else_is_given_them(tmp_path: Path, next_one: Any) -> None:
    h = builder(tmp_path, classic=True, partitions=3)
    a, b = h.member(0), h.member(1)
    h.round(1, (a, range(2)), (b, [2]), generation=1)
    h.round(2, generation=2)
    if next_one:
        h.round(3, (b, range(3)), generation=3)
    dealt = [(r["moved"], r["most"], r["least"]) for r in judge(h.seal(), oracle.detect).rebalances]
    assert dealt == [(0, 2, 1), (2, 3, 3)][: 1 + len(next_one)]


def test_who_left_by_the_round_has_nothing_of_it(tmp_path: Path) -> None:
    h = builder(tmp_path, classic=True, partitions=3)
    a, b = h.member(0), h.member(1)
    h.round(1, (a, range(2)), (b, [2]), generation=1)
    h.round(2, (a, range(2)), generation=2)  # what b had is nobody's
    dealt = [(r["moved"], r["most"], r["least"]) for r in judge(h.seal(), oracle.detect).rebalances]
    assert dealt == [(0, 2, 1), (0, 2, 2)]


def test_a_member_that_comes_back_to_its_partitions_moves_none(tmp_path: Path) -> None:
    h = builder(tmp_path, classic=True, partitions=2)
    a, b, again = (h.member(number) for number in (0, 1, 0))
    h.round(1, (a, [0]), (b, [1]), generation=1)
    a.assigned(1, reported=False)
    h.round(2, (again, [0]), (b, [1]), generation=2)
    again.assigned(2, reported=False)
    assert [r["moved"] for r in judge(h.seal(), oracle.detect).rebalances] == [0, 0]


def test_a_rebalance_belongs_to_the_last_step_that_fired_before_it_began(tmp_path: Path) -> None:
    h = builder(tmp_path, classic=True)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    h.fault("pause", 3, 4, step=0, members=(a.name,))
    h.join(b, 5)
    h.fault("kill", 6, step=1)
    b.assigned(7)
    rounds = judge(h.seal(), oracle.detect).rebalances
    assert [(r["begin_s"], r["step"]) for r in rounds[:2]] == [(0.99, None), (5.0, 0)]


@pytest.mark.parametrize("sealed", [True, False])
def test_an_interrupted_run_says_in_which_phase_it_ended(tmp_path: Path, sealed: bool) -> None:
    h = builder(tmp_path)
    good_life(h)
    h.phases = {"provision": (0.0, 0.5), "warm-up": (0.5, 1.0), "chaos": (1.0, None)}
    missing = ["history/log", "history/coordinator", "history/partitions.json"]  # no audit was made
    verdict = judge(h.seal(without=missing, sealed=sealed), oracle.detect)
    assert verdict.validity == Validity.UNKNOWN
    said = {c.check: c.reason for c in verdict.checks if c.check != "faults"}
    assert set(said) == {"history", "delivery", "order", "ownership", "progress"}
    expected = "the run ended in phase chaos, and what should have followed is not in its history"
    assert set(said.values()) == {expected}


def test_a_phase_that_was_given_up_tells_why_and_later_ones_do_not_hide_it(tmp_path: Path) -> None:
    h = builder(tmp_path)
    h.phases = {"provision": (0.0, 0.5), "warm-up": (0.5, None), "audit": (60.0, None), "seal": (61.0, 61.5)}
    h.reasons = {"warm-up": "waited 60 s for the group to be stable", "audit": "nobody answered"}
    verdict = judge(h.seal(), oracle.detect)
    expected = "the run ended in phase warm-up, and what should have followed is not in its history"
    assert check(verdict, "history").reason == f"{expected}: waited 60 s for the group to be stable"
    assert check(verdict, "delivery").reason == expected


def test_a_run_that_went_through_is_not_said_to_be_interrupted(tmp_path: Path) -> None:
    h = builder(tmp_path)
    good_life(h)
    h.phases["audit"], h.phases["seal"] = (40.0, 40.5), (40.5, 40.6)
    assert judge(h.seal(), oracle.detect).validity == Validity.VALID


def test_an_interrupted_run_is_still_invalid_when_what_it_tells_is_wrong(tmp_path: Path) -> None:
    h = builder(tmp_path)
    h.phases = {"warm-up": (0.0, 1.0), "chaos": (1.0, None)}
    a, _ = rewinding(h)
    verdict = judge(h.seal(without=["history/log", "history/coordinator"]), oracle.detect)
    delivery = check(verdict, "delivery")
    assert (verdict.validity, delivery.validity) == (Validity.INVALID, Validity.INVALID)
    assert delivery.reason.startswith(f"rewind: {a.name} received 2 records of orders-0 (offsets 2 to 3) again")


def rewinding(h: HistoryBuilder) -> tuple[MemberTeller, MemberTeller]:
    """One member goes back inside its assignment, and another does well."""
    h.write(6)
    h.write(6, tp=1) if len(h.partitions) > 1 else None
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(4), 2)
    a.process(range(2, 6), 3)
    a.commit(6, 4)
    if len(h.partitions) > 1:
        b.assigned(1, tp=1)
        b.process(range(6), 2, tp=1)
        b.commit(6, 4, tp=1)
    a.close(38)
    b.close(39)
    return a, b


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("history/delivered/member-1.1.parquet", Validity.INVALID),
        ("history/delivered/member-0.1.parquet", Validity.UNKNOWN),
        ("history/log/audit.parquet", Validity.INVALID),
        ("history/produced/producer-0.parquet", Validity.INVALID),
        ("history/coordinator/offsets.jsonl", Validity.INVALID),
        ("history/events.parquet", Validity.UNKNOWN),
    ],
)
@pytest.mark.parametrize("finder", [oracle.detect, find_here], ids=["oracle", "kernel"])
def test_a_certain_violation_counts_whatever_is_missing_elsewhere(
    tmp_path: Path, name: str, expected: Validity, finder: Detector
) -> None:
    h = builder(tmp_path, partitions=2)
    rewinding(h)
    verdict = judge(h.seal(without=[name]), finder)
    delivery = check(verdict, "delivery")
    assert (delivery.validity, check(verdict, "history").validity) == (expected, Validity.UNKNOWN)
    found = {f.kind: f.severity for f in delivery.findings}
    assert found.get("rewind", Severity.NOTE) == (Severity.VIOLATION if expected == Validity.INVALID else Severity.NOTE)


@pytest.mark.parametrize("actor", ["member-0.1", "member-1.1", "harness"])
def test_event_lines_that_are_damaged_hurt_whom_they_are_about(tmp_path: Path, actor: str) -> None:
    h = builder(tmp_path, partitions=2)
    rewinding(h)
    run = h.seal(sealed=False)
    with (run / "history" / "events" / f"{actor}.jsonl").open("a") as lines:
        lines.write("no event\n")
    seal(run)
    expected = Validity.INVALID if actor == "member-1.1" else Validity.UNKNOWN
    assert check(judge(run, oracle.detect), "delivery").validity == expected


@pytest.mark.parametrize(
    ("lacks", "expected"),
    [
        ([], Validity.INVALID),
        (["history/log/audit.parquet"], Validity.UNKNOWN),
        (["history/delivered/member-0.1.parquet"], Validity.INVALID),
    ],
)
def test_a_lost_write_is_certain_only_with_the_audit(tmp_path: Path, lacks: list[str], expected: Validity) -> None:
    h = builder(tmp_path, [{"type": "delivery"}])
    good_life(h)
    del h.log[4]
    verdict = judge(h.seal(without=lacks), oracle.detect)
    assert check(verdict, "delivery").validity == expected


@pytest.mark.parametrize("finder", [oracle.detect, find_here], ids=["oracle", "kernel"])
def test_a_rule_that_crashes_fails_its_kinds_and_no_others(
    tmp_path: Path, finder: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(subject: object) -> list[Detection]:
        raise RuntimeError("planted")

    if finder is oracle.detect:
        monkeypatch.setitem(oracle.RULES, broken, ("key-order",))
    monkeypatch.setitem(group_rules.RULES, broken, ("dead-member",))
    h = builder(tmp_path)
    good_life(h)
    run = h.seal()
    failed = finder(run, load(run), Bounds())[1].failed
    assert set(failed) == {"dead-member", *(["key-order"] if finder is oracle.detect else [])}
    assert set(failed.values()) == {"the rule broken failed: RuntimeError: planted"}


@pytest.mark.parametrize("finder", [oracle.detect, find_here], ids=["oracle", "kernel"])
def test_records_that_cannot_be_read_are_named(tmp_path: Path, finder: Detector) -> None:
    h = builder(tmp_path)
    good_life(h)
    run = h.seal()
    tables = load(run)
    (run / "history" / "log" / "audit.parquet").write_bytes(b"junk")
    assert {damage.file for damage in finder(run, tables, Bounds())[1].damage} == {"history/log/audit.parquet"}


def test_a_rule_that_failed_on_some_records_takes_nothing_from_what_it_found(tmp_path: Path) -> None:
    def half(run: Path, tables: Tables, bounds: Bounds) -> tuple[list[Anomaly], JudgedCounts]:
        found, facts = oracle.detect(run, tables, bounds)
        return found, replace(facts, failed=dict.fromkeys(("rewind", "key-order"), "the rule failed"))

    h = builder(tmp_path)
    rewinding(h)
    verdict = judge(h.seal(), half)
    assert check(verdict, "delivery").validity == Validity.INVALID
    assert check(verdict, "order").validity == Validity.UNKNOWN


@pytest.mark.parametrize("finder", [oracle.detect, find_here], ids=["oracle", "kernel"])
def test_a_delivery_from_before_its_assignment_is_damage_and_no_crash(tmp_path: Path, finder: Detector) -> None:
    h = builder(tmp_path)
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(10), 2)
    a.commit(8, 3)
    a.revoked(4)
    b.assigned(6)
    rows = b.process(range(8, 10), 7)
    for row in rows:
        row.delivered_ns = ns(1.5)
    b.close(39)
    verdict = judge(h.seal(), finder)
    assert verdict.validity == Validity.UNKNOWN
    file = "history/delivered/member-1.1.parquet"
    assert (
        check(verdict, "history").reason
        == f"{file}: 2 deliveries of orders-0 are older than the assignment that they name"
    )
    assert {c.validity for c in verdict.checks if c.check not in ("faults", "ownership")} == {Validity.UNKNOWN}
    assert not [c.reason for c in verdict.checks if "failed" in c.reason]


def test_a_kind_that_nobody_knows_needs_all_evidence() -> None:
    assert certainty.missing_evidence(
        Anomaly("a-new-kind", "orders", 0), [Damage("host", "history/host.jsonl", "torn")]
    )


@pytest.mark.parametrize(
    ("file", "actor"),
    [
        ("history/delivered/member-2.1.parquet", "member-2.1"),
        ("history/segments/member-2.1.12.seg", "member-2.1"),
        ("history/events/harness.jsonl", "harness"),
        ("history/produced/producer-0.unacked.parquet", "producer-0"),
        ("history/events.parquet", ""),
        ("history/delivered", ""),
        ("history/segments/member-2.1.3.new", ""),
    ],
)
def test_a_file_tells_whom_it_is_about(file: str, actor: str) -> None:
    assert certainty.whose(file) == actor


def test_what_was_seen_and_is_not_certain_is_a_note_that_says_why(tmp_path: Path) -> None:
    h = builder(tmp_path, [{"type": "delivery"}])
    good_life(h)
    verdict = judge(h.seal(without=["history/log"]), oracle.detect)
    reported = {(f.kind, f.severity, f.reason) for f in check(verdict, "delivery").findings}
    why = "missing evidence may explain it: history/log: it holds no Parquet file"
    kinds = ("lost-write", "delivered-then-lost")
    assert reported == {(kind, Severity.NOTE, f"{kind} was seen, but {why}") for kind in kinds}


def test_a_file_of_a_producer_that_is_missing_is_noticed(tmp_path: Path) -> None:
    for name in ("producer-0.parquet", "producer-0.unacked.parquet"):
        h = builder(tmp_path)
        good_life(h)
        verdict = judge(h.seal(without=[f"history/produced/{name}"]), oracle.detect)
        assert verdict.validity == Validity.UNKNOWN
        assert check(verdict, "delivery").reason == f"history/produced/{name}: it is missing, but this producer ran"
