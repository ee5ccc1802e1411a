"""The small tables: what the coordinator's records and the members' events come to, and what is certain of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.tables import Tables, coordinator, load
from fencepost.checkers.tables.rows import FOREVER, Life, Window
from fencepost_member.committing.commits import by_answer
from history.builder import BLUR_NS, HistoryBuilder, ns

NUMBERS = {("orders", 0): 0, ("orders", 1): 1}


def line(order: int, at: float, **fields: Any) -> dict[str, Any]:
    return {"order": order, "at_ns": ns(at), "uncertainty_ns": BLUR_NS, "term": 1, "deleted": False, **fields}


def current(order: int, member_id: str, assigned: list[int], pending: list[int], **fields: Any) -> dict[str, Any]:
    given = {"assigned": {"orders": assigned}, "pending_revocation": {"orders": pending}}
    return line(order, order, type="current", member_id=member_id, epoch=order, **given, **fields)


def owners(lines: list[dict[str, Any]], who: dict[str, str] | None = None) -> list[tuple[int, int, str]]:
    given, *_ = coordinator.assignments(lines, who or {}, NUMBERS)
    return [(g.order, g.tp, g.member_id) for g in given]


def test_a_partition_to_be_revoked_still_belongs_to_its_owner() -> None:
    lines = [current(1, "a", [0, 1], []), current(2, "a", [0], [1]), current(3, "a", [0], []), current(4, "b", [1], [])]
    assert owners(lines) == [(1, 0, "a"), (1, 1, "a"), (3, 1, ""), (4, 1, "b")]


def test_a_deleted_member_has_nothing_and_is_gone_once() -> None:
    lines = [
        current(1, "a", [0], []),
        line(2, 2, type="current", member_id="a") | {"deleted": True},
        line(3, 3, type="member", member_id="a") | {"deleted": True},
        line(4, 4, type="member", member_id="stranger") | {"deleted": True},
    ]
    given, gone, _ = coordinator.assignments(lines, {"a": "member-0.1"}, NUMBERS)
    assert [(g.order, g.member_id) for g in given] == [(1, "a"), (2, "")]
    assert [(g.order, g.incarnation) for g in gone] == [(2, "member-0.1")]


def test_a_classic_generation_is_the_whole_truth() -> None:
    def generation(order: int, **has: list[int]) -> dict[str, Any]:
        members = [{"member_id": m, "assignment": {"orders": tps, "other": [7]}} for m, tps in has.items()]
        return line(order, order, type="classic-group", generation=order, members=members)

    lines = [generation(1, a=[0, 1]), generation(2, a=[0], b=[]), generation(3, b=[1, 0])]
    given, gone, _ = coordinator.assignments(lines, {}, NUMBERS)
    assert [(g.order, g.tp, g.member_id) for g in given] == [
        (1, 0, "a"),
        (1, 1, "a"),
        (2, 1, ""),
        (3, 0, "b"),
        (3, 1, "b"),
    ]
    assert [g.member_id for g in gone] == ["a"]


def test_a_member_id_belongs_to_the_incarnation_that_says_so_else_to_the_only_life_in_its_slot() -> None:
    lives = {
        "member-0.1": Life("member-0.1", slot=0, started_ns=ns(1), ended_ns=ns(5)),
        "member-0.2": Life("member-0.2", slot=0, started_ns=ns(5.1)),
    }
    events = [{"member_id": "told", "actor": "member-0.2"}, {"member_id": None, "actor": "member-0.2"}]

    def request(member_id: str, at: float, slot: int | None = 0) -> dict[str, Any]:
        return {"member_id": member_id, "slot": slot, "start_ns": ns(at)}

    requests = [
        *(request("told", 2), request("first", 2), request("second", 6), request("between", 5.05)),
        *(request("both", 2), request("both", 6), request("observer", 2, None)),
    ]
    assert coordinator.incarnations(events, requests, lives) == {
        "told": "member-0.2",
        "first": "member-0.1",
        "second": "member-0.2",
    }


def told(folder: Path, classic: bool = False) -> HistoryBuilder:
    h = HistoryBuilder(folder, classic=classic)
    h.write(10)
    return h


def test_what_may_have_been_fetched_is_the_last_certain_commit_and_all_after_it(tmp_path: Path) -> None:
    h = told(tmp_path)
    a = h.member(0)
    a.commit(2, 2)  # answered at 2.002
    a.commit(4, 3, outcome=None, accepted=True)
    a.commit(6, 4)  # appended at 4.001, answered at 4.002
    h.accepts(None, 5)
    tables = load(h.seal())
    assert tables.committed_between(0, ns(1), ns(1.5)) == (-1,)
    assert tables.committed_between(0, ns(1), ns(2.5)) == (-1, 2)
    assert tables.committed_between(0, ns(2.5), ns(2.6)) == (2,)
    assert tables.committed_between(0, ns(3.5), ns(3.6)) == (2, 4)
    assert tables.committed_between(0, ns(4.0015), ns(4.0016)) == (2, 4, 6)
    assert tables.committed_between(0, ns(4.5), ns(4.6)) == (6,)
    assert tables.committed_between(0, ns(4.5), ns(5)) == (6, -1)
    assert tables.committed_between(0, ns(4.5), ns(3.5)) == (2, 4, 6)  # nothing that the wrong order may hide
    assert tables.final_committed(0) == -1


def test_without_the_offsets_log_the_answers_that_members_had_must_do(tmp_path: Path) -> None:
    h = told(tmp_path)
    a = h.member(0)
    a.commit(2, 2)
    a.commit(3, 3, outcome="fail", error="ILLEGAL_GENERATION")
    tables = load(h.seal(without=["history/coordinator/offsets.jsonl"]))
    assert [(a.offset, a.answered_ns) for a in tables.accepted] == [(2, ns(2.002))]
    assert [d.part for d in tables.damage] == ["offsets"]


@pytest.mark.parametrize("classic", [False, True])
def test_who_certainly_had_a_partition_is_known_outside_the_uncertainty_only(tmp_path: Path, classic: bool) -> None:
    h = told(tmp_path, classic)
    a, b = h.member(0), h.member(1)
    a.assigned(2)  # the coordinator's record is of 1.990
    b.assigned(5)  # and of 4.990; nobody has it from 4.989
    tables = load(h.seal())

    def owner(at: float) -> str | None:
        record = tables.certain_owner(0, ns(at))
        return record.incarnation if record else None

    assert [owner(at) for at in (1.9, 1.9903, 1.9906, 4.98, 4.9887, 4.9903, 4.9906)] == [
        *(None, None, "member-0.1", "member-0.1", None, None, "member-1.1")
    ]


def test_an_interval_is_certain_between_its_callbacks(tmp_path: Path) -> None:
    h = told(tmp_path)
    a = h.member(0)
    a.assigned(1, took=0.5)
    a.revoked(3, took=0.5)
    a.assigned(4)
    a.die(6)
    (first, second) = load(h.seal()).intervals
    assert (first.certain, first.how, first.number) == (Window(ns(1.5), ns(3)), "revoked", 0)
    assert [first.possible_at(ns(at)) for at in (0.9, 1.1, 3.4, 3.6)] == [False, True, True, False]
    # Of a death only the last sign of life is certain; it is certainly over when the process is reaped.
    assert (second.certain, second.how, second.given_up_end_ns) == (Window(ns(4.001), ns(4.001)), "died", ns(6))


def test_an_interval_that_nobody_saw_end_was_owned_until_the_last_sign(tmp_path: Path) -> None:
    h = told(tmp_path)
    a = h.member(0)
    a.assigned(1)
    a.commit(0, 5)
    (interval,) = load(h.seal()).intervals
    assert (interval.certain, interval.how, interval.given_up_end_ns) == (Window(ns(1.001), ns(5.002)), "", 0)
    assert interval.possible_at(FOREVER)


def test_a_pause_is_proven_from_its_witness_to_its_undo(tmp_path: Path) -> None:
    h = told(tmp_path)
    a, b = h.member(0), h.member(1)
    a.pause(3, 5, step=0)
    b.pause(6, 8, step=1, proven=False)
    tables = load(h.seal())
    assert tables.lives[a.name].paused == (Window(ns(3), ns(5)),)
    assert tables.lives[b.name].paused == ()


def test_commits_with_different_answers_are_told_apart(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, partitions=2)
    a = h.member(0)
    for answer in by_answer(
        {("orders", 0): 3, ("orders", 1): 4}, {("orders", 0): "", ("orders", 1): "NOT_COORDINATOR"}
    ):
        a.events.note("commit", detail={"mode": "sync"}, **answer)
    assert [(c.tp, c.outcome, c.error) for c in load(h.seal()).commits] == [
        (0, "ok", ""),
        (1, "info", "NOT_COORDINATOR"),
    ]


def test_quiet_is_from_the_heal_to_the_end_of_the_drain(tmp_path: Path) -> None:
    h = told(tmp_path / "plain")
    assert load(h.seal()).quiet == Window(ns(1), ns(40))
    h = told(tmp_path / "faults")
    h.fault("kill", 5)
    run = h.seal()
    assert load(run).quiet == Window(ns(20.1), ns(40))
    h = told(tmp_path / "cut off")
    del h.phases["drain"]
    assert load(h.seal()).quiet == Window(0, 0)


def test_rounds_are_generations_with_members(tmp_path: Path) -> None:
    h = told(tmp_path, classic=True)
    a, b = h.member(0), h.member(1)
    a.assigned(2)
    b.assigned(5)
    a.evicted(6)
    b.close(7)
    rounds = load(h.seal()).rounds
    assert [r.members for r in rounds] == [
        ("member-0.1",),
        ("member-0.1",),
        ("member-0.1", "member-1.1"),
        ("member-1.1",),
    ]


def test_an_empty_folder_has_empty_tables_and_tells_what_is_missing(tmp_path: Path) -> None:
    tables = load(tmp_path)
    assert tables == Tables(tmp_path, damage=tables.damage)
    assert {d.part for d in tables.damage} == {
        *("scenario", "plan", "clock", "partitions", "events", "delivered", "produced", "log"),
        *("offsets", "requests", "metadata", "host"),
    }


@pytest.mark.parametrize(
    ("setting", "unguarded"), [(True, False), ("true", False), (False, True), ("false", True), (None, True)]
)
def test_only_a_writer_that_told_so_is_known_not_to_be_idempotent(
    tmp_path: Path, setting: object, unguarded: bool
) -> None:
    h = HistoryBuilder(tmp_path)
    h.producer(idempotent=setting)
    tables = load(h.seal())
    assert bool(tables.not_idempotent(0)) == unguarded
    assert not tables.not_idempotent(1)
