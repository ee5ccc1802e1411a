"""Committed offsets that expired while nobody had the partition: that is why records are done again, or passed over.

Both finders are asked, also with partitions cut into ranges.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checkers.counts import Bounds
from fencepost.checkers.explanations import example
from fencepost.checkers.promises import Commits, Delivery, Effects, Order, Parked
from fencepost.checkers.tables import load
from history.builder import HistoryBuilder, MemberTeller
from history.test_kernel_equals_oracle import agreed
from history.test_kinds import A, B, Told

EXPIRED = "committed offset expired"
DOWN_S = 65.0  # after the last commit, at 3 s
C = "member-2.1"
PROMISED = {kind for promise in (Commits, Delivery, Effects, Order, Parked) for kind in promise.kinds}


def found_in(h: HistoryBuilder) -> list[Told]:
    found, facts = agreed(h.seal(), Bounds())
    assert not facts.failed
    reported = [(a.kind, a.cause, a.excuse, a.members, a.first_offset, a.last_offset, a.count) for a in found]
    return [row for row in reported if row[0] in PROMISED]


def down(h: HistoryBuilder, *, dies: bool = True, minutes: int = 1) -> MemberTeller:
    """A member does six of ten records and commits; then the group is empty. A member of after that."""
    h.phases |= {"heal": (80.0, 80.1), "drain": (80.1, 120.0)}
    h.keeps("delete", offsets_minutes=minutes)
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.process(range(6), 2)
    a.commit(6, 3)
    if dies:
        a.die(4)
        a.evicted(7)
    else:
        a.revoked(4)
        a.close(5)
    return h.member(1)


def goes_on(member: MemberTeller, first: int, at: float = 70) -> None:
    member.assigned(at, generation=2)
    member.process(range(first, 10), at + 1)
    member.commit(10, at + 3, generation=2)
    member.revoked(118)
    member.close(119)


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize("dies", [True, False])
def test_what_is_done_again_is_so_because_the_offsets_expired(tmp_path: Path, dies: bool, classic: bool) -> None:
    """However the former owner went: what it had done was committed."""
    h = HistoryBuilder(tmp_path, classic=classic)
    b = down(h, dies=dies)
    h.accepts(None, DOWN_S)
    goes_on(b, 0)
    assert found_in(h) == [("redelivery", "", EXPIRED, (A, B), 0, 5, 6)]


@pytest.mark.parametrize("dies", [True, False])
def test_offsets_that_did_not_expire_are_below_what_is_done_again(tmp_path: Path, dies: bool) -> None:
    h = HistoryBuilder(tmp_path)
    goes_on(down(h, dies=dies), 0)
    below = ("redelivery-below-commit", "", "", (B, A), 0, 5, 6)
    assert found_in(h) == [below, ("wrong-start", "", "", (B,), 0, 0, 1)]


def test_what_was_not_committed_is_done_again_for_its_own_reason(tmp_path: Path) -> None:
    """Where nothing expired, and where something did, but that was not above it."""
    h = HistoryBuilder(tmp_path)
    b = down(h)
    h.members[0].process([6, 7], 3.5)
    h.accepts(None, DOWN_S)
    goes_on(b, 0)
    died = ("redelivery", "", "former owner died", (A, B), 6, 7, 2)
    assert found_in(h) == [("redelivery", "", EXPIRED, (A, B), 0, 5, 6), died]


def test_who_dies_afterwards_is_why_the_next_one_does_it_again(tmp_path: Path) -> None:
    """The second member commits 3 of what it does again, and dies; the third is told that."""
    h = HistoryBuilder(tmp_path)
    b, c = down(h), h.member(2)
    h.accepts(None, DOWN_S)
    b.assigned(70)
    b.process(range(5), 71)
    b.commit(3, 72)
    b.die(73)
    b.evicted(76)
    goes_on(c, 3, at=77)
    assert found_in(h) == [
        ("redelivery", "", EXPIRED, (A, B), 0, 4, 5),
        ("redelivery", "", EXPIRED, (A, C), 5, 5, 1),
        ("redelivery", "", "former owner died", (B, C), 3, 4, 2),
    ]


@pytest.mark.parametrize("way", ["too soon", "kept for longer", "while a member has it"])
def test_offsets_that_somebody_deleted_did_not_expire(tmp_path: Path, way: str) -> None:
    h = HistoryBuilder(tmp_path)
    b = down(h, minutes=2 if way == "kept for longer" else 1)
    if way == "while a member has it":
        b.assigned(64)
        b.revoked(66)
    h.accepts(None, 62.9 if way == "too soon" else DOWN_S)
    goes_on(b, 0)
    assert found_in(h) == [("redelivery", "", "former owner died", (A, B), 0, 5, 6)]


def test_a_declared_act_says_more(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    b = down(h)
    h.act("reset_offsets", DOWN_S - 0.1, 0)
    h.accepts(None, DOWN_S)
    goes_on(b, 0)
    assert found_in(h) == [("redelivery", "", "declared act: reset_offsets", (A, B), 0, 5, 6)]


@pytest.mark.parametrize("expired", [True, False])
def test_who_begins_at_the_end_goes_past_what_it_had_not_done(tmp_path: Path, expired: bool) -> None:
    """That is a loss; if nothing expired, the member is to blame for where it began, too."""
    h = HistoryBuilder(tmp_path, config={"auto.offset.reset": "latest"})
    b = down(h)
    if expired:
        h.accepts(None, DOWN_S)
    goes_on(b, 8)
    cause = "expired" if expired else "skipped"
    unseen: Told = ("unseen", cause, "", (B,), 6, 7, 2)
    blamed: list[Told] = [("commit-ahead", "", "", (B,), 6, 7, 2), ("wrong-start", "", "", (B,), 8, 8, 1)]
    assert found_in(h) == (sorted([unseen]) if expired else sorted([unseen, blamed[1]]))
    assert Delivery().severity("unseen", cause, "") == "violation"


def test_what_is_skipped_later_is_no_matter_of_what_expired(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, config={"auto.offset.reset": "latest"})
    b = down(h)
    h.accepts(None, DOWN_S)
    h.write(3)
    b.assigned(70, generation=2)
    b.process([8, 10, 11, 12], 71)
    b.commit(13, 73, generation=2)
    b.revoked(118)
    b.close(119)
    found = [row for row in found_in(h) if row[0] == "unseen"]
    assert found == [("unseen", "expired", "", (B,), 6, 7, 2), ("unseen", "skipped", "", (B,), 9, 9, 1)]


@pytest.mark.parametrize(
    ("reported", "at_the_end"),
    [
        ({"auto.offset.reset": "largest"}, True),
        ({"auto.offset.reset": "earliest"}, False),
        ({"group.id": "shop"}, True),  # which is what every client does by default
        ({}, False),
    ],
)
def test_where_a_program_begins_is_what_it_told(tmp_path: Path, reported: dict[str, str], at_the_end: bool) -> None:
    """The scenario says nothing of it: the settings of a program are its own."""
    h = HistoryBuilder(tmp_path)
    h.member(0, config=reported).close(39)
    assert load(h.seal()).resets_to_end is at_the_end
    lines = HistoryBuilder(tmp_path)
    lines.member(0, config=reported, told_by="lines").close(39)
    assert load(lines.seal()).resets_to_end is (at_the_end and "group.id" not in reported)


@pytest.mark.parametrize("expired", [True, False])
def test_effects_come_twice_because_the_offsets_expired(tmp_path: Path, expired: bool) -> None:
    h = HistoryBuilder(tmp_path)
    b = down(h)
    if expired:
        h.accepts(None, DOWN_S)
    for kind, offset in (("effect", 5), ("dead-letter", 4)):
        h.members[0].effect(offset, 2.6, seq=0, kind=kind)
        b.effect(offset, 72, seq=1, kind=kind)
    goes_on(b, 0)
    excuse = EXPIRED if expired else ""
    found = [row for row in found_in(h) if row[0] in ("duplicate-effect", "dead-letter-twice")]
    assert found == [
        ("dead-letter-twice", "", excuse, (B, A), 4, 4, 1),
        ("duplicate-effect", "", excuse, (B, A), 5, 5, 1),
    ]
    assert Effects().severity("duplicate-effect", "", excuse) == ("permitted" if expired else "violation")


def test_the_sentence_says_so(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    b = down(h)
    h.accepts(None, DOWN_S)
    goes_on(b, 0)
    run = h.seal()
    tables = load(run)
    (redelivery,) = [a for a in agreed(run, Bounds())[0] if a.kind == "redelivery"]
    reported = example(tables, redelivery)
    assert reported["sentence"].endswith(
        ": the group's committed offset of orders-0 had expired while no member owned it."
    )
    assert any("the coordinator deleted the committed offset 6" in witness for witness in reported["witnesses"])
