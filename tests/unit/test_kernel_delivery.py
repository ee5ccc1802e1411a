"""Rules of the kernel about records against the log, on small tables written here: each edge on either side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_parts import STRETCH, TP, columns, owned, part, rows

from fencepost.checkers.kernel import delivery
from fencepost.checkers.kernel.tallies import Numbers
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Accepted, Act, Commit, Given, Gone, Interval, Life, Partition, Window
from fencepost.history import Sent, State
from fencepost.model import TopicPartition
from fencepost.model.clients import BLACK_BOX

LOG = {"offset": np.arange(10, 14), "key": np.ones(4, int), "writer": np.zeros(4, int), "seq": np.arange(4)}
NOTHING = {name: np.zeros(0, np.int64) for name in LOG}
RESET = Act("reset", TP, 999)


def delivered(
    tables: Tables, given: Mapping[str, Any], log: Mapping[str, Any] = LOG, sent: Sequence[Any] = (), start: int = 0
) -> Any:
    return part(tables, rows(("a", "b"), **given), STRETCH, start=start, log=log, sent=[*sent])


def test_what_there_is_is_counted() -> None:
    """Judged is what is visible from where the group starts to before its last commit."""
    tables = Tables(Path(), accepted=(Accepted(TP, 12, 0, 50), Accepted(TP, 13, 1, 60)))
    state = (State.DELIVERED, State.BEGUN, State.DONE, State.PARKED, State.FAILED)
    names = ("offset", "delivered_ns", "begin_ns", "done_ns")
    told = columns(names, [(10, 70, 0, 0), (11, 60, 1, 0), (12, 80, 81, 95), (12, 90, 90, 91), (13, 75, 75, 76)])
    pieces = [{"offset": np.arange(10, 12)}, {"offset": np.arange(12, 15)}]
    of = delivered(tables, {**told, "state": np.array(state)}, sent=pieces, start=11)
    delivery.facts(of)
    counts = {"#acknowledged": 5, "#visible": 4, "#judged": 2, "#begun": 4, "#finished": 2}
    assert of.tallies == {
        **{(kind, -1, (), "", ""): Numbers(count) for kind, count in counts.items()},
        ("#delivered", -1, (), "", ""): Numbers(5, -1, -1, 60, 95),
    }
    none = delivered(tables, NOTHING, log=NOTHING)
    delivery.facts(none)
    assert {*none.tallies.values()} == {Numbers(0)}


# What the log does not hold.


class Sends:
    """All that was ever sent, in two pieces."""

    told = (
        [(1, 0, n, Sent.OK) for n in range(7)],
        [(1, 0, 4, Sent.INFO), (1, 0, 5, Sent.ABORTED), (1, 0, 6, Sent.ABORTED), (1, 0, 6, Sent.OK)],
    )

    def sends(self, seq: np.ndarray) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
        for piece in self.told:
            found = columns(("key", "writer", "seq", "outcome"), piece)
            near = np.flatnonzero(np.isin(found["seq"], seq))
            yield found, near


CONTENT = ("offset", "key", "writer", "seq")


def strange(*given: tuple[int, int, int, int], **more: Any) -> dict[Any, Numbers]:
    """What is said of deliveries, from 101 on, of records (offset, key, writer, seq)."""
    of = delivered(Tables(Path(), **more), {**columns(CONTENT, given), "delivered_ns": 101 + np.arange(len(given))})
    vars(of)["whole"] = Sends()
    delivery.beside_the_log(of)
    return {(kind, *about): numbers for (kind, _, *about), numbers in of.tallies.items()}


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ((10, 1, 0, 0), ""),
        ((13, 1, 0, 3), ""),
        ((10, 2, 0, 0), "phantom"),
        ((10, 1, 1, 0), "phantom"),
        ((10, 1, 0, 9), "phantom"),
        ((10, 1, 0, 1), "delivered-then-lost"),
        ((14, 1, 0, 4), "delivered-then-lost"),
        ((15, 1, 0, 5), "aborted-read"),
        ((16, 1, 0, 6), "aborted-read"),
        ((17, 1, 0, 7), "phantom"),
        ((17, 0, 0, 0), "phantom"),
        ((9, 1, 0, 0), "delivered-then-lost"),
    ],
)
def test_what_was_delivered_and_is_not_there_was_never_sent_or_lost_or_aborted(
    record: tuple[int, int, int, int], kind: str
) -> None:
    found = strange((10, 1, 0, 0), record)
    assert found == ({(kind, ("a",), "", ""): Numbers(1, record[0], record[0], 102, 102)} if kind else {})


@pytest.mark.parametrize("kind", ["phantom", "delivered-then-lost", "aborted-read"])
def test_what_is_not_there_is_excused_by_any_declared_act_and_else_by_what_its_member_reads(kind: str) -> None:
    record = {"phantom": (17, 1, 0, 7), "delivered-then-lost": (14, 1, 0, 4), "aborted-read": (15, 1, 0, 5)}[kind]
    reading = {"uncommitted": {"a": "it reads all", "b": "so does it"}}
    uncommitted = "it reads all" if kind == "aborted-read" else ""
    assert [*strange(record, acts=(RESET,))] == [(kind, ("a",), "", "declared act: reset")]
    assert [*strange(record, **reading)] == [(kind, ("a",), "", uncommitted)]
    assert [*strange(record, acts=(RESET,), **reading)] == [(kind, ("a",), "", "declared act: reset")]


@pytest.mark.parametrize(("log_start", "firsts"), [(0, [9, 10]), (10, [10]), (11, [])])
def test_nothing_is_missing_below_the_start_of_the_log(log_start: int, firsts: Sequence[int]) -> None:
    known = {TP: Partition(TP, TopicPartition("orders", 0), log_start)}
    of = delivered(Tables(Path(), partitions=known), columns(CONTENT, [(9, 1, 0, 8), (10, 1, 0, 8)]))
    vars(of)["whole"] = Sends()
    sends = {**columns((*CONTENT, "acked_ns"), [(9, 1, 0, 8, 7), (10, 1, 0, 8, 7)])}
    vars(of)["sent"] = [sends]
    delivery.beside_the_log(of)
    for kind in ("phantom", "lost-write"):
        found = [numbers for key, numbers in of.tallies.items() if key[0] == kind]
        assert [n.first for n in found] == firsts[:1]
        assert sum(n.count for n in found) == len(firsts)


@pytest.mark.parametrize(("acts", "excuse"), [((), ""), ((RESET,), "declared act: reset")])
def test_a_send_is_lost_that_was_acknowledged_and_is_not_at_its_offset(acts: tuple[Act, ...], excuse: str) -> None:
    names = ("offset", "writer", "seq", "acked_ns")
    pieces = [
        columns(names, [(10, 0, 0, 61), (11, 0, 1, 62)]),
        columns(names, [(12, 1, 2, 63), (13, 0, 9, 64), (14, 0, 4, 65)]),
        columns(names, []),
        columns(names, [(15, 1, 9, 60)]),
    ]
    of = delivered(Tables(Path(), acts=acts), NOTHING, sent=pieces)
    delivery.beside_the_log(of)
    assert of.tallies == {
        ("lost-write", TP, ("producer-0",), "", excuse): Numbers(2, 13, 14, 64, 65),
        ("lost-write", TP, ("producer-1",), "", excuse): Numbers(2, 12, 15, 60, 63),
    }


@pytest.mark.parametrize(("acts", "excuse"), [((), ""), ((RESET,), "declared act: reset")])
def test_what_comes_with_another_content_than_at_first_is_inconsistent(acts: tuple[Act, ...], excuse: str) -> None:
    names = ("who", *CONTENT, "delivered_ns")
    told = [
        *[(0, 10, 1, 0, 0, 50), (0, 10, 2, 0, 0, 60), (0, 11, 1, 0, 1, 51), (0, 12, 1, 0, 2, 58)],
        *[(0, 13, 1, 0, 3, 59), (0, 14, 1, 0, 4, 10), (1, 10, 1, 0, 0, 70), (1, 11, 1, 1, 1, 61)],
        *[(1, 12, 1, 0, 3, 57), (1, 13, 1, 0, 3, 59), (1, 15, 2, 0, 4, 11)],
    ]
    of = delivered(Tables(Path(), acts=acts), columns(names, told))
    delivery.inconsistent_offsets(of)
    assert of.tallies == {
        ("inconsistent-offsets", TP, ("a",), "", excuse): Numbers(1, 10, 10, 50, 60),
        ("inconsistent-offsets", TP, ("b", "a"), "", excuse): Numbers(1, 11, 11, 51, 61),
        ("inconsistent-offsets", TP, ("a", "b"), "", excuse): Numbers(1, 12, 12, 57, 58),
    }


# What nobody finished.


class Polls:
    """The last poll of each stream is 5."""

    def polls(self, name: str, number: int) -> tuple[int, int]:
        return 0, 5


GOT = ("offset", "interval", "poll", "state", "delivered_ns")


def unseen(
    *given: tuple[int, int, int, int, int], final: int = 12, start: int = 11, **more: Any
) -> dict[Any, tuple[int, int, int]]:
    """What is said of 11, which ``a`` may have got (``GOT``): how often, and when."""
    accepted = (Accepted(TP, final, 0, 300),)
    commits = (Commit(TP, 11, "a", "", 1, 150, 151, "ok"), Commit(TP, 12, "b", "", 1, 250, 251, "ok"))
    tables = Tables(Path(), accepted=accepted, commits=commits, **more)
    of = delivered(tables, columns(GOT, given), start=start)
    vars(of)["whole"] = Polls()
    delivery.unseen(of)
    assert all(n.first == n.last == 11 for n in of.tallies.values())
    assert {key[:2] for key in of.tallies} <= {("unseen", TP)}
    return {key[2:]: (n.count, n.from_ns, n.to_ns) for key, n in of.tallies.items()}


KILLED = {"lives": {"a": Life("a", how="killed")}}
MADE = Act("made anew", TP, 999, 1000, skipped=12)


@pytest.mark.parametrize(
    ("given", "more", "told"),
    [
        ([], {}, (("b",), "skipped", "")),
        ([], {"final": 11}, None),
        ([], {"start": 12}, None),
        ([(11, 0, 1, State.DONE, 50)], {}, None),
        ([(11, 0, 1, State.PARKED, 50)], {}, None),
        ([(11, 0, 1, State.BEGUN, 50)], {}, (("b", "a"), "committed-unprocessed", "")),
        ([(11, 0, 1, State.BEGUN, 50)], KILLED, (("b", "a"), "in-doubt", "")),
        ([(11, 0, 1, State.DELIVERED, 50)], KILLED, (("b", "a"), "committed-unprocessed", "")),
        ([(11, -1, 5, State.DELIVERED, 50)], {}, (("b", "a"), "committed-unprocessed", "")),
        ([], {"acts": (RESET,)}, (("b",), "skipped", "declared act: reset")),
        ([], {"acts": (MADE,)}, (("b",), "skipped", "declared act: made anew")),
        ([], {"acts": (MADE._replace(skipped=11),)}, (("b",), "skipped", "")),
    ],
)
def test_a_record_below_the_last_commit_that_nobody_finished_is_unseen(
    given: Sequence[tuple[int, int, int, int, int]], more: Mapping[str, Any], told: Any
) -> None:
    assert unseen(*given, **more) == ({told: (1, 250, 250)} if told else {})


IN_HAND = "in hand when its owner "


@pytest.mark.parametrize(
    ("how", "poll", "gone_ns", "excuse"),
    [
        ("died", 5, 0, IN_HAND + "died"),
        ("died", 4, 0, ""),
        ("lost", 5, 0, IN_HAND + "was evicted"),
        ("lost", 4, 0, ""),
        ("revoked", 5, 0, ""),
        ("revoked", 5, 199, IN_HAND + "was evicted"),
        ("revoked", 5, 200, ""),
        ("", 5, 999, IN_HAND + "was evicted"),
        ("", 5, 99, ""),
    ],
)
def test_what_was_of_the_last_poll_was_in_hand_when_its_owner_died_or_was_evicted(
    how: str, poll: int, gone_ns: int, excuse: str
) -> None:
    gone = (Gone("id-a", "a", 1, gone_ns, 0),) if gone_ns else ()
    found = unseen((11, 0, poll, State.DELIVERED, 150), intervals=(owned("a", 0, 100, how=how),), gone=gone)
    assert [*found] == [(("b", "a"), "committed-unprocessed", excuse)]


def unconsumed(*intervals: Interval, finished: int = 10, **more: Any) -> dict[Any, Numbers]:
    """The group committed 11 at last, and somebody finished one more."""
    told = {"phases": {"warm-up": Window(1, 5), "drain": Window(6, 400)}, **more}
    tables = Tables(Path(), accepted=(Accepted(TP, 11, 0, 300),), intervals=intervals, **told)
    of = delivered(tables, {"offset": np.array([finished]), "state": np.array([State.DONE])})
    delivery.unconsumed(of)
    return {key[2:]: numbers for key, numbers in of.tallies.items()}


@pytest.mark.parametrize(
    ("intervals", "owner"),
    [
        ([], ()),
        ([owned("a", 0, 100)], ("a",)),
        ([owned("b", 0, 100), owned("a", 0, 101)], ("a",)),
        ([owned("b", 0, 101), owned("a", 0, 100)], ("b",)),
        ([owned("b", 0, 100), owned("a", 0, 100)], ("b",)),
    ],
)
def test_what_is_left_behind_the_last_commit_is_of_the_last_owner(
    intervals: Sequence[Interval], owner: tuple[str, ...]
) -> None:
    assert unconsumed(*intervals) == {(owner, "", ""): Numbers(3, 11, 13, 5, 400)}
    assert unconsumed(*intervals, finished=12) == {(owner, "", ""): Numbers(2, 11, 13, 5, 400)}
    assert unconsumed(*intervals, phases={"warm-up": Window(1, 5), "drain": Window(6, 0)}) == {}


@pytest.mark.parametrize(("client", "owner"), [(BLACK_BOX, ("b",)), ("confluent-kafka", ())])
def test_of_black_boxes_the_coordinator_tells_who_had_it_last(client: str, owner: tuple[str, ...]) -> None:
    given = (Given(TP, 0, 50, 0, "id-a", "a"), Given(TP, 1, 60, 0, "id-b", "b"), Given(TP, 2, 70, 0, "", ""))
    found = unconsumed(given=given, scenario={"scenario": {"group": {"client": client}}})
    assert [*found] == [(owner, "", "")]


def test_where_all_was_finished_nothing_is_left() -> None:
    tables = Tables(Path(), phases={"warm-up": Window(1, 5), "drain": Window(6, 400)})
    state = np.full(4, int(State.DONE))
    of = delivered(tables, {"offset": np.arange(10, 14), "state": state})
    delivery.unconsumed(of)
    delivery.unseen(of)
    assert of.tallies == {}
