"""By which rule a user's program is done with a record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fencepost.evidence.sealing.segment_reader import read_segments
from fencepost_member.instrument.in_flight import InFlight
from fencepost_member.instrument.taken import TakenList
from fencepost_member.ownership import Tp
from fencepost_member.recording.recorder import Recorder

ZERO, ONE = ("orders", 0), ("orders", 1)


class Told:
    """What is in hand, of records that a recorder really keeps."""

    def __init__(self, folder: Path, rule: str) -> None:
        self._folder, self._recorder = folder, Recorder(folder, "member-0.1", capacity=20)
        self._lane, self.hand = self._recorder.lane(), InFlight(rule)

    def deliver(self, *places: tuple[Tp, int]) -> None:
        self.hand.delivered(self._lane, self._recorded(places))

    def deliver_list(self, *places: tuple[Tp, int]) -> TakenList:
        """The list that a program gets, of numbers."""
        taking = self.hand.taking(len(places))
        self.hand.delivered(self._lane, self._recorded(places), taking, range(len(places)))
        assert taking is not None
        return TakenList([*range(len(places))], taking)

    def _recorded(self, places: Sequence[tuple[Tp, int]]) -> list[tuple[int, Tp, int]]:
        return [(self._lane.delivered(tp[1], at, 0, 0, 0, 0, 0, n), tp, at + 1) for n, (tp, at) in enumerate(places)]

    def states(self) -> dict[tuple[int, int], str]:
        """Of the last delivery of each place."""
        self._recorder.close()
        ((segment,), _) = read_segments(self._folder)
        rows = segment.records
        assert (rows["begin_ns"][rows["done_ns"] > 0] > 0).all()
        assert (rows["begin_ns"] <= rows["done_ns"])[rows["done_ns"] > 0].all()
        words = {(False, False): "delivered", (True, False): "begun", (True, True): "done"}
        return {(int(r["tp"]), int(r["offset"])): words[r["begin_ns"] > 0, r["done_ns"] > 0] for r in rows}


@pytest.mark.parametrize(("rule", "polled"), [("next-poll", "done"), ("commit", "begun"), ("effect", "done")])
def test_to_poll_again_is_to_be_done_by_one_rule_only(tmp_path: Path, rule: str, polled: str) -> None:
    reported = Told(tmp_path, rule)
    reported.deliver((ZERO, 5))
    reported.hand.polling()
    assert reported.states() == {(0, 5): polled}
    assert reported.hand.done == (polled == "done")


@pytest.mark.parametrize("rule", ["next-poll", "commit"])
def test_of_a_partition_one_record_comes_after_the_other_and_a_commit_ends_what_is_below(
    tmp_path: Path, rule: str
) -> None:
    reported = Told(tmp_path, rule)
    reported.deliver((ZERO, 5), (ZERO, 6), (ONE, 9), (ZERO, 7))
    reported.hand.committing({ZERO: 7, ("payments", 0): 3})
    assert reported.states() == {(0, 5): "done", (0, 6): "done", (0, 7): "begun", (1, 9): "begun"}


def test_what_is_delivered_again_is_not_ended_twice(tmp_path: Path) -> None:
    reported = Told(tmp_path, "commit")
    reported.deliver((ZERO, 5), (ZERO, 6), (ONE, 1))
    reported.hand.released([ZERO], 6)
    reported.hand.released([ONE])
    reported.deliver((ZERO, 6), (ZERO, 7))
    reported.hand.committing({ZERO: 8, ONE: 2})
    assert reported.hand.done == 3
    assert reported.states() == {(0, 5): "done", (0, 6): "done", (0, 7): "done", (1, 1): "begun"}


@pytest.mark.parametrize(
    ("rule", "in_hand"), [("next-poll", "done"), ("effect", "done"), ("commit", "begun"), ("told", "begun")]
)
def test_a_rebalance_while_it_handles_a_record_does_not_keep_it_from_being_done_by_its_next_poll(
    tmp_path: Path, rule: str, in_hand: str
) -> None:
    reported = Told(tmp_path, rule)
    reported.deliver((ZERO, 5))
    reported.hand.assigned([ZERO])
    reported.hand.polling()
    reported.hand.committing({ZERO: 6})
    assert reported.states() == {(0, 5): in_hand}


def test_who_tells_is_done_in_any_order_with_each_record_once(tmp_path: Path) -> None:
    reported = Told(tmp_path, "told")
    reported.deliver((ZERO, 5), (ZERO, 6), (ZERO, 7), (ONE, 5))
    reported.hand.polling()
    reported.hand.committing({ZERO: 8})
    assert [reported.hand.processed(ZERO, following) for following in (7, 7, 9, 6)] == [True, False, False, True]
    assert reported.hand.done == 2
    assert reported.states() == {(0, 5): "done", (0, 6): "done", (0, 7): "begun", (1, 5): "begun"}


def test_what_was_never_taken_out_of_a_list_is_not_processed_whatever_is_committed(tmp_path: Path) -> None:
    reported = Told(tmp_path, "next-poll")
    records = reported.deliver_list((ZERO, 5), (ZERO, 6), (ONE, 9), (ZERO, 7))
    assert next(iter(records)) == 0
    reported.hand.committing({ZERO: 8, ONE: 10})
    reported.hand.polling()
    reported.deliver((ZERO, 8))
    reported.hand.polling()
    states = reported.states()
    assert {at for at, state in states.items() if state == "done"} == {(0, 5), (0, 8)}
    assert (states[0, 6], states[0, 7]) == ("delivered", "delivered")
    assert reported.hand.done == 2


def test_what_is_taken_later_is_processed_by_the_poll_after_that(tmp_path: Path) -> None:
    reported = Told(tmp_path, "next-poll")
    list(reported.deliver_list((ONE, 1)))
    records = reported.deliver_list((ZERO, 5), (ZERO, 6))
    reported.hand.polling()
    assert reported.hand.done == 1
    list(records)
    reported.hand.polling()
    assert reported.states() == {(1, 1): "done", (0, 5): "done", (0, 6): "done"}


def test_a_program_whose_looks_are_never_seen_is_taken_to_have_looked(tmp_path: Path) -> None:
    reported = Told(tmp_path, "next-poll")
    records = reported.deliver_list((ZERO, 5), (ZERO, 6))
    assert records[-1] == 1  # as who wants to know where the list ends
    reported.hand.polling()
    assert reported.states() == {(0, 5): "done", (0, 6): "done"}


def test_the_first_record_of_a_partition_begins_when_its_list_is_opened(tmp_path: Path) -> None:
    reported = Told(tmp_path, "next-poll")
    list(reported.deliver_list((ONE, 1)))
    reported.hand.polling()
    records = reported.deliver_list((ZERO, 5), (ZERO, 6), (ONE, 2))
    next(iter(records))
    assert reported.states() == {(1, 1): "done", (0, 5): "begun", (0, 6): "delivered", (1, 2): "begun"}


def test_of_records_that_are_never_taken_only_so_many_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost_member.instrument.in_flight.MOST_KEPT", 2)
    reported = Told(tmp_path, "next-poll")
    list(reported.deliver_list((ONE, 1)))
    records = reported.deliver_list((ZERO, 5), (ZERO, 6), (ZERO, 7))
    reported.hand.polling()
    list(records)
    reported.hand.polling()
    assert reported.states() == {(1, 1): "done", (0, 5): "delivered", (0, 6): "done", (0, 7): "done"}


@pytest.mark.parametrize("rule", ["commit", "told", "effect"])
def test_other_rules_do_not_ask_what_is_taken(tmp_path: Path, rule: str) -> None:
    assert Told(tmp_path, rule).hand.taking(3) is None
