"""A user's program is given records where no instrument sees it: what is concluded from that is unknown, not a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from fencepost.history import RecordState
from fencepost.model import Severity, Validity, Verdict
from history.builder import HistoryBuilder, MemberTeller, ns
from history.test_kernel_equals_oracle import verdict_of

PROGRAM = {"type": "own_program", "processed": "next-poll"}
BY_EFFECT = {"type": "own_program", "processed": "effect"}
OWN_LOOP = {"type": "poll_loop"}
PROMISES = [{"type": name} for name in ("delivery", "order", "commits", "progress")]
UNREAD = ", and no delivery of these assignments is recorded"


def builder(folder: Path, workload: dict[str, str] = PROGRAM, *, partitions: int = 1, **options: Any) -> HistoryBuilder:
    return HistoryBuilder(folder, partitions, promises=options.pop("promises", PROMISES), workload=workload, **options)


def broken(verdict: Verdict) -> dict[str, int]:
    found = [f for check in verdict.checks for f in check.findings if f.severity is Severity.VIOLATION]
    return {f.kind: sum(other.count for other in found if other.kind == f.kind) for f in found}


def commits_only(h: HistoryBuilder) -> MemberTeller:
    """An owner of which nothing is recorded but callbacks and commits."""
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.commit(4, 2)
    a.commit(10, 3)
    a.close(39)
    return a


def effects(h: HistoryBuilder, offsets: Iterable[int], tp: int = 0) -> None:
    for offset in offsets:
        where = [[*h.partitions[tp], offset]]
        h.harness.note(
            "effect", partitions=where, detail={"seq": offset, "token": 0, "key": -1}, begin_ns=ns(41), end_ns=ns(41)
        )


def test_what_is_committed_in_an_assignment_of_which_nothing_is_recorded_is_no_loss_but_unknown(tmp_path: Path) -> None:
    h = builder(tmp_path)
    commits_only(h)
    verdict = verdict_of(h)
    assert broken(verdict) == {}
    assert {c.check: c.validity for c in verdict.checks} == {
        "faults": Validity.VALID,
        **dict.fromkeys(("history", "delivery", "order", "commits", "progress"), Validity.UNKNOWN),
    }
    (history,) = (c for c in verdict.checks if c.check == "history")
    assert f"it committed past 10 records of orders-0{UNREAD}" in history.reason
    assert (
        "either the client skipped the records, or the program reads them through calls that are not recorded"
        in history.reason
    )
    sentences = [e["sentence"] for f in history.findings for e in f.examples if f.kind == "unrecorded-delivery"]
    assert sentences == [
        "The history of member-0.1 has no delivery of 10 records of orders-0 (offsets 0 to 9), and no other delivery "
        "of the assignment in which it committed past them (from 1.000 s to 3.000 s)."
    ]


def test_members_that_run_our_own_loop_are_seen_whatever_they_are_given(tmp_path: Path) -> None:
    h = builder(tmp_path, OWN_LOOP)
    commits_only(h)
    assert broken(verdict_of(h)) == {"unseen": 10, "stuck-partition": 1}


# Each shows that the client, or the program, really skipped what it committed past.
SKIPS: dict[str, tuple[Callable[[HistoryBuilder], object], dict[str, int]]] = {}


def skips(**kinds: int) -> Callable[[Callable[[HistoryBuilder], object]], Callable[[HistoryBuilder], object]]:
    def noted(tell: Callable[[HistoryBuilder], object]) -> Callable[[HistoryBuilder], object]:
        SKIPS[tell.__name__] = tell, {kind.replace("_", "-"): count for kind, count in kinds.items()}
        return tell

    return noted


@skips(unseen=2, commit_ahead=2, poll_skip=2)
def around_the_gap(h: HistoryBuilder) -> None:
    """Others of the same assignment are recorded."""
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.process([*range(4), *range(6, 10)], 2)
    a.commit(10, 3)
    a.close(39)


@skips(unseen=2, commit_ahead=2)
def behind_what_was_given(h: HistoryBuilder) -> None:
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.process(range(8), 2)
    a.commit(10, 3)
    a.close(39)


@skips(unseen=6)
def a_seek_forward(h: HistoryBuilder) -> None:
    """Nothing shows that it read anything before."""
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.seek(6, 2)
    a.commit(6, 3)
    a.process(range(6, 10), 4)
    a.commit(10, 5)
    a.close(39)


@skips(unseen=6)
def a_commit_of_nobody_who_owns_it(h: HistoryBuilder) -> None:
    h.write(10)
    a, b = h.member(0), h.member(1)
    b.commit(6, 0.95)
    a.assigned(1)
    a.process(range(6, 10), 2)
    a.commit(10, 3)
    a.close(38)
    b.close(39)


@pytest.mark.parametrize("name", SKIPS)
def test_who_really_skips_records_is_found(tmp_path: Path, name: str) -> None:
    tell, kinds = SKIPS[name]
    h = builder(tmp_path)
    tell(h)
    verdict = verdict_of(h)
    assert {kind: n for kind, n in broken(verdict).items() if kind in ("unseen", *kinds)} == kinds
    assert verdict.validity is Validity.INVALID


def test_where_the_program_went_before_it_read_unseen_is_where_it_began(tmp_path: Path) -> None:
    """As a framework does that moves its position to the committed offset by itself."""
    h = builder(tmp_path)
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(4), 2)
    a.commit(4, 3)
    a.revoked(4)
    b.assigned(5)
    b.seek(4, 6)
    b.commit(10, 7)
    a.close(38)
    b.close(39)
    verdict = verdict_of(h)
    assert broken(verdict) == {}
    assert verdict.validity is Validity.UNKNOWN
    assert any(f"past 6 records of orders-0{UNREAD}" in check.reason for check in verdict.checks)


def test_a_loss_elsewhere_stays_one(tmp_path: Path) -> None:
    """In another partition, and in the same one of another member."""
    h = builder(tmp_path, partitions=2)
    h.write(10, 0)
    h.write(10, 1)
    a, b = h.member(0), h.member(1)
    a.assigned(1, 0)
    a.assigned(1, 1)
    a.process([*range(4), *range(6, 10)], 2, 1)
    a.commit(10, 3, 1)
    a.process([0, 1, 3], 3.5, 0)
    a.commit(4, 4, 0)
    a.revoked(5, 0)
    b.assigned(6, 0)
    b.commit(10, 7, 0)
    a.close(38)
    b.close(39)
    verdict = verdict_of(h)
    assert broken(verdict)["unseen"] == 3
    assert verdict.validity is Validity.INVALID
    (delivery,) = (check for check in verdict.checks if check.check == "delivery")
    notes = [f for f in delivery.findings if f.severity is Severity.NOTE]
    assert [(f.kind, f.count) for f in notes] == [("unseen", 6)]
    assert "missing evidence may explain it" in notes[0].reason


def test_nobody_who_is_given_records_unseen_stops_or_leaves_anything_behind(tmp_path: Path) -> None:
    h = builder(tmp_path, promises=[{"type": "progress", "within_s": 5}])
    h.write(4)
    h.write(6, at=21)
    a = h.member(0)
    a.assigned(1)
    a.commit(4, 2)
    a.close(39)
    verdict = verdict_of(h)
    assert broken(verdict) == {}
    assert verdict.validity is Validity.UNKNOWN


@pytest.mark.parametrize("lost", [(), (3, 7)], ids=["none", "two"])
def test_the_effects_show_which_records_were_given_and_which_are_lost(tmp_path: Path, lost: tuple[int, ...]) -> None:
    h = builder(tmp_path, BY_EFFECT)
    commits_only(h)
    effects(h, sorted({*range(10)} - {*lost}))
    verdict = verdict_of(h)
    assert broken(verdict) == ({"unseen": len(lost)} if lost else {})
    assert verdict.validity is (Validity.INVALID if lost else Validity.UNKNOWN)
    (delivery,) = (check for check in verdict.checks if check.check == "delivery")
    assert [e["sentence"] for f in delivery.findings for e in f.examples] == [
        "Several commits, the first of offset 4 by member-0.1 (generation 1, 2.000 s), went past 2 records of orders-0 "
        "(offsets 3 to 7), in an assignment without any recorded delivery; they had no effect."
    ][: len(lost)]


def test_an_effect_shows_that_an_instrument_sees_some_reads_and_not_others(tmp_path: Path) -> None:
    h = builder(tmp_path, BY_EFFECT)
    around_the_gap(h)
    effects(h, {*range(10)} - {5})
    rows = h.members[0].rows
    assert all(row.state == RecordState.DONE for row in rows)
    verdict = verdict_of(h)
    assert broken(verdict) == {"unseen": 1, "commit-ahead": 1}
    (history,) = (check for check in verdict.checks if check.check == "history")
    assert history.validity is Validity.UNKNOWN
    assert "1 records of orders-0 had an effect, but no delivery of them is recorded" in history.reason


def test_a_member_that_commits_what_it_was_given_before_is_whole(tmp_path: Path) -> None:
    """It lost the partition, has it again, and is given nothing of it in that assignment."""
    h = builder(tmp_path)
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.process(range(10), 2)
    a.revoked(3)
    a.assigned(4)
    a.commit(10, 5)
    a.close(39)
    assert verdict_of(h).validity is Validity.VALID


@pytest.mark.parametrize("given", [True, False], ids=["at work, perhaps", "given nothing"])
def test_an_effect_does_not_tell_when_a_member_that_does_not_poll_was_at_work(tmp_path: Path, given: bool) -> None:
    h = builder(tmp_path, BY_EFFECT, promises=[{"type": "progress", "within_s": 10}])
    h.write(4)
    a = h.member(0)
    a.assigned(1)
    if given:
        a.process(range(4), 2)
        a.commit(4, 3)
        effects(h, range(4))
    a.unpolled(3, 38)
    for at in range(4, 38):
        a.heartbeat(at)
    a.close(39)
    assert ("stuck-member" in broken(verdict_of(h))) == (not given)
