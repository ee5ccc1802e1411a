"""What a VerifiableConsumer had in hand when it died, and had committed past by the brokers' word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from unit.member.test_json_lines import ASSIGNED, MS, REVOKED, STARTED, Told, committed, consumed, record

from fencepost.checkers.tables import load, load_records
from fencepost.checkers.tables.processing_rules import as_processed
from fencepost.evidence.brokers import request_log
from fencepost.evidence.sealing import recreated_topics
from fencepost.evidence.sealing.seal import seal
from fencepost.history import HARNESS, RecordState
from fencepost.history.run_folder import RunFolder
from fencepost.model.clients import LINES, VERIFIABLE
from fencepost_member.recording.events import EventLog

DONE, BEGUN, DELIVERED = RecordState.DONE, RecordState.BEGUN, RecordState.DELIVERED
# Two polls, of which the second one came in the seventh millisecond, and died before it told more.
TOLD = [STARTED, ASSIGNED, record(3), record(4), consumed(3, 4), committed(5), record(5), record(6), consumed(5, 6)]
AS_TOLD = {3: DONE, 4: DONE, 5: BEGUN, 6: DELIVERED}
OWN, OTHER = "member-0.1", "member-1.1"


def asked(offset: int, at_ms: float, client: str = OWN, **more: Any) -> dict[str, Any]:
    """A request to commit that offset of orders-0, by a client, after so many milliseconds."""
    offsets = [["orders", 0, offset, None], ["bills", 0, 99, None]]
    return {
        "api": "OFFSET_COMMIT",
        "client_id": client,
        "at_ms": at_ms,
        "uncertainty_ns": MS // 2,
        "offsets": offsets,
        **more,
    }


FIRST = asked(5, 5)


def sealed(
    folder: Path,
    lines: list[dict[str, Any]],
    log: list[dict[str, Any]] | None,
    client: str = VERIFIABLE,
    how: str = "killed",
    torn: str = "",
) -> dict[int, RecordState]:
    """How far the judge says that the member got with each record that it was given last; the seal keeps what it
    reported. Beside it is one of another client in the group, to which the same happens."""
    run = RunFolder.create(folder, "commits", 1)
    harness = EventLog(run.history / "events" / f"{HARNESS}.jsonl", HARNESS)
    reported, other = (Told(run.history, client=c, actor=a) for a, c in ((OWN, client), (OTHER, LINES)))
    for member, actor in ((reported, OWN), (other, OTHER)):
        member.write(*lines)
        harness.note("ended", actor=actor, detail={"how": how})
    run.write_json(recreated_topics.PARTITIONS, {"partitions": [{"tp": 0, "topic": "orders", "partition": 0}]})
    if log is not None:
        every = [*log, *({**one, "client_id": OTHER} for one in log)]
        text = "".join(
            json.dumps({**one, "start_ns": reported.begun_ns + int(one["at_ms"] * MS)}) + "\n" for one in every
        )
        (run.history / request_log.FILE).write_text(text + torn)
    seal(run.path)
    rows, tables = load_records(run.path).delivered, load(run.path)
    assert {row.offset for row in rows if row.state == DONE} == {3, 4}, "the seal keeps what was recorded"
    rows = tuple(as_processed(row, tables.inferred_of.get((row.incarnation, row.tp), ())) for row in rows)
    own, others = ([row for row in rows if row.incarnation == actor] for actor in (OWN, OTHER))
    for row in own:
        assert row.state != DONE or row.delivered_ns <= row.begin_ns <= row.done_ns
    assert {row.offset for row in others if row.state == DONE} == {3, 4}
    return {row.offset: RecordState(row.state) for row in own}


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ([FIRST, asked(7, 8)], {5: DONE, 6: DONE}),
        ([asked(7, 8), FIRST], {5: DONE, 6: DONE}),  # by time, not by place: several brokers write
        ([FIRST, asked(7, 8, error="NOT_COORDINATOR")], {5: DONE, 6: DONE}),  # whatever becomes of it
        ([FIRST, asked(6, 8)], {5: DONE}),
        ([FIRST, asked(7, 5.6)], {5: DONE, 6: DONE}),  # maybe after it got them
        ([FIRST, asked(7, 5.4)], {}),
        ([FIRST], {}),
        ([FIRST, asked(7, 8, OTHER)], {}),
        ([FIRST, asked(7, 8), asked(5, 9)], {}),
        ([FIRST, asked(7, 8, api="OFFSET_FETCH")], {}),
        ([FIRST, asked(7, 8, offsets=[["bills", 0, 7, None]])], {}),
        ([FIRST, asked(7, 8, offsets=None)], {}),
        ([FIRST, asked(7, 8, offsets=7)], {}),
        ([], {}),
        (None, {}),
    ],
)
def test_who_died_before_it_told_of_its_commit_was_done_with_what_that_names(
    tmp_path: Path, log: list[dict[str, Any]] | None, found: dict[int, RecordState]
) -> None:
    assert sealed(tmp_path, TOLD, log) == {**AS_TOLD, **found}


@pytest.mark.parametrize(("client", "how"), [(LINES, "killed"), (VERIFIABLE, "closed")])
def test_who_tells_itself_when_it_is_done_is_believed(tmp_path: Path, client: str, how: str) -> None:
    assert sealed(tmp_path, TOLD, [FIRST, asked(7, 8)], client, how) == AS_TOLD


def test_the_end_of_a_process_by_itself_is_a_death_as_well(tmp_path: Path) -> None:
    assert sealed(tmp_path, TOLD, [FIRST, asked(7, 8)], how="crashed") == {**AS_TOLD, 5: DONE, 6: DONE}


def test_what_was_given_up_or_came_once_more_before_is_as_it_was_told(tmp_path: Path) -> None:
    given_up = [*TOLD, REVOKED, ASSIGNED, record(6), record(7), consumed(6, 7)]
    assert sealed(tmp_path, given_up, [FIRST, asked(8, 20)]) == {**AS_TOLD, 6: DONE, 7: DONE}


def test_what_is_torn_at_the_end_of_the_log_says_nothing(tmp_path: Path) -> None:
    log = [FIRST, asked(7, 8)]
    assert sealed(tmp_path, TOLD, log, torn='{"api": "OFFSET_COMM') == {**AS_TOLD, 5: DONE, 6: DONE}
