"""The judge, not the seal, applies a rule of processing; and folders of former releases are judged as ever."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fencepost.checkers.counts import JudgedCounts
from fencepost.checkers.tables import load
from fencepost.evidence.sealing.seal import seal
from fencepost.history import DELIVERED_VERSION, FORMAT_VERSION, RecordState
from fencepost.history.run_folder import fingerprint
from fencepost.model import Anomaly
from fencepost.model.clients import VERIFIABLE
from history.builder import HistoryBuilder
from history.test_kernel_equals_oracle import agreed

PROGRAM = {"type": "own_program", "processed": "commit"}
BY_EFFECT = {**PROGRAM, "processed": "effect"}
A, B = "member-0.1", "member-1.1"


def by_rule(run: Path, workload: Mapping[str, Any]) -> tuple[list[tuple[str, str, int]], JudgedCounts]:
    """What both finders say of the run when its scenario has this workload: (kind, cause, first offset) of findings."""
    path = run / "scenario.json"
    scenario = json.loads(path.read_text())
    scenario["scenario"]["workload"] = workload
    path.write_text(json.dumps(scenario))
    found, facts = agreed(run)
    return sorted(_brief(anomaly) for anomaly in found), facts


def _brief(anomaly: Anomaly) -> tuple[str, str, int]:
    return anomaly.kind, anomaly.cause, anomaly.first_offset


def _unseen(found: list[tuple[str, str, int]]) -> list[int]:
    return sorted(offset for kind, _, offset in found if kind == "unseen")


def told(folder: Path, version: int, client: str = "") -> HistoryBuilder:
    """A member is done with six records and dies with two more in flight, which it had asked to commit past. Another
    member gets the last one again."""
    h = HistoryBuilder(folder, promises=[{"type": "delivery"}], workload=PROGRAM)
    h.delivered_version, h.client = version, {"client": client} if client else {}
    h.write(9)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(6), 2)
    a.commit(6, 2.5)
    first, _ = a.poll([6, 7], 3)
    first.begin(3.0)
    a.commit(8, 3.1, outcome=None, accepted=True)
    a.die(3.3)
    a.evicted(9)
    b.assigned(10)
    b.process([8], 11)
    b.commit(9, 12)
    b.close(39)
    return h


def test_a_sealed_folder_is_judged_by_another_rule_from_the_same_facts(tmp_path: Path) -> None:
    h = told(tmp_path, DELIVERED_VERSION)
    h.affected(0, *range(7))
    run = h.seal()
    files = {path: path.read_bytes() for path in (run / "history" / "delivered").iterdir()}
    by_commit, recorded = by_rule(run, PROGRAM)
    by_effect, processed = by_rule(run, BY_EFFECT)
    again, _ = by_rule(run, PROGRAM)
    assert _unseen(by_commit) == [6, 7], "they were in flight"
    assert _unseen(by_effect) == [7, 8], "6 was in flight, but has an effect; 7 and 8 have none"
    assert (recorded.finished, processed.finished) == (7, 7)
    assert again == by_commit
    assert {path: path.read_bytes() for path in files} == files


def test_the_last_commit_of_a_dead_verifiable_consumer_tells_what_it_had_processed(tmp_path: Path) -> None:
    run = told(tmp_path / "verifiable", DELIVERED_VERSION, VERIFIABLE).seal()
    found, facts = by_rule(run, PROGRAM)
    assert (facts.finished, facts.begun) == (9, 9)
    assert _unseen(found) == []
    found, facts = by_rule(told(tmp_path / "other", DELIVERED_VERSION, "another").seal(), PROGRAM)
    assert (facts.finished, facts.begun) == (7, 8)
    assert _unseen(found) == [6, 7]


@pytest.mark.parametrize("workload", [PROGRAM, BY_EFFECT], ids=["commit", "effect"])
def test_a_former_folder_holds_what_the_seal_made_by_its_rule_and_is_judged_as_it_is(
    tmp_path: Path, workload: dict[str, Any]
) -> None:
    """Of its records nobody knows any more what was recorded, so no rule is applied again."""
    h = told(tmp_path, FORMAT_VERSION, VERIFIABLE)
    h.affected(0, 0)
    run = h.seal()
    _, facts = by_rule(run, workload)
    assert load(run).inferred == ()
    assert (facts.finished, facts.begun) == (7, 8)


@pytest.mark.parametrize("workload", [PROGRAM, BY_EFFECT], ids=["commit", "effect"])
def test_a_former_folder_gives_the_verdict_of_one_that_is_sealed_today(
    tmp_path: Path, workload: dict[str, Any]
) -> None:
    """The former seal wrote into the records what today's judge infers."""
    today = told(tmp_path / "today", DELIVERED_VERSION, VERIFIABLE)
    former = told(tmp_path / "former", FORMAT_VERSION, VERIFIABLE)
    for h in (today, former):
        h.affected(0, 0, 1, 7, 8)
    for row in (row for member in former.members for row in member.rows):
        by_effect = workload is BY_EFFECT and row.offset not in (0, 1, 7, 8)
        if workload is BY_EFFECT or row.offset in (6, 7):
            row.begin_ns, row.done_ns, row.state = row.delivered_ns, row.delivered_ns, RecordState.DONE
        if by_effect and row.offset != 6:  # which was committed past by a member that died
            row.begin_ns, row.done_ns, row.state = 0, 0, RecordState.DELIVERED
    assert by_rule(today.seal(), workload) == by_rule(former.seal(), workload)


def test_one_file_of_a_former_folder_that_is_sealed_today_is_judged_by_the_rule(tmp_path: Path) -> None:
    """A seal may have been cut off by an upgrade: each file says itself what it holds."""
    h = told(tmp_path, DELIVERED_VERSION)
    h.affected(0, *range(9))
    run = h.seal()
    path = run / "history" / "delivered" / f"{A}.parquet"
    pq.write_table(pq.read_table(path).replace_schema_metadata({"format_version": "1"}), path)
    by_rule(run, BY_EFFECT)
    assert {(one.incarnation, len(one.ords)) for one in load(run).inferred} == {(B, 1)}


def test_the_judge_infers_nothing_where_effects_are_unknown(tmp_path: Path) -> None:
    h = told(tmp_path, DELIVERED_VERSION)
    h.harness.note("unrecorded", detail={"text": "no such table", "parts": ["effects", "delivered"]})
    _, facts = by_rule(h.seal(), BY_EFFECT)
    assert facts.finished == 7


def test_sealing_twice_changes_no_record(tmp_path: Path) -> None:
    run = told(tmp_path, DELIVERED_VERSION, VERIFIABLE).seal()
    before = fingerprint(run, f"history/delivered/{A}.parquet")
    seal(run)
    assert fingerprint(run, f"history/delivered/{A}.parquet") == before
