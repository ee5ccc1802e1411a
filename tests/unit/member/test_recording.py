"""Commits of a user's program in its history: by what the client answers, whatever was meant."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fencepost_member.config import LoopConfig, MemberConfig
from fencepost_member.instrument import consumer_names
from fencepost_member.instrument.program import InstrumentedProgram
from fencepost_member.instrument.recording import Recording
from fencepost_member.recording.events import EventLog, read
from fencepost_member.recording.recorder import Recorder

A, B = ("orders", 0), ("orders", 1)
REFUSED = "REBALANCE_IN_PROGRESS"


class Told(Recording):
    """A recording, and its commits: how, the next offsets, and the error (None: none, "?": no answer came)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        topics = {"orders": {"0": 0, "1": 1}}
        loop = LoopConfig(processed="next-poll")
        config = MemberConfig("member-0.1", 0, 0, str(folder), "g", topics, "127.0.0.1:1", loop=loop)
        log, lane = EventLog(folder / "events.jsonl", "member-0.1"), Recorder(folder, "member-0.1").lane()
        program = SimpleNamespace(config=config, history=lambda claim: (log, lane), knows=lambda consumer: None)
        claim = consumer_names.claim(config, folder / "claims")
        self.identities = [("a", 1)]
        super().__init__(cast("InstrumentedProgram", program), claim, lambda: self.identities[-1])
        self.subscribing(["orders"])

    def came(self, offset: int) -> None:
        """A record of ``A`` was returned; the client takes it for stored."""
        self.delivered([(*A, offset, b"k", b"v", None)], stores=True)

    def commits(self) -> list[tuple[str, dict[int, int], str | None]]:
        last: dict[int, dict[str, Any]] = {e["id"]: e for e in read(self._folder / "events.jsonl").events}
        return [
            (e["detail"]["mode"], {p: at for _, p, at in e["partitions"]}, e["error"] if e["end_ns"] else "?")
            for e in last.values()
            if e["kind"] == "commit"
        ]

    def asked(self) -> list[dict[int, int] | None]:
        """Of each answered commit what was stored when the program asked for it, if it named nothing."""
        last = {e["id"]: e for e in read(self._folder / "events.jsonl").events if e["kind"] == "commit" and e["end_ns"]}
        reported = (e["detail"].get("asked") for e in last.values())
        return [None if rows is None else {p: at for _, p, at in rows} for rows in reported]


@pytest.fixture
def recording(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_what_was_refused_is_committed_again_and_what_was_accepted_is_not(recording: Told) -> None:
    recording.came(4)
    recording.committing(recording.stored(), wait=True, named=False)({A: 5}, {A: REFUSED})
    assert recording.stored() == {A: 5}
    recording.committing(recording.stored(), wait=True, named=False)({A: 5}, {A: ""})
    assert recording.stored() == {}
    assert recording.commits() == [("sync", {0: 5}, REFUSED), ("sync", {0: 5}, None)]


def test_a_commit_of_what_is_stored_may_hold_what_came_after_it_began(recording: Told) -> None:
    recording.came(4)
    recording.committing(recording.stored(), wait=False, named=False)
    recording.came(5)
    recording.committed({A: 6}, {A: ""})
    assert recording.commits() == [("async", {0: 6}, None)]
    assert recording.stored() == {}


def test_what_is_stored_stays_so_when_the_program_moves_its_position(recording: Told) -> None:
    recording.came(4)
    recording.seeking({A: 4})()
    assert recording.stored() == {A: 5}


def test_one_of_nothing_that_was_known_of_is_told_by_its_answer_alone(recording: Told) -> None:
    recording.committing(recording.stored(), wait=False, named=False)
    assert recording.commits() == []
    recording.committed({A: 6}, {A: ""})
    assert recording.commits() == [("async", {0: 6}, None)]


def test_where_nothing_was_to_commit_the_first_commit_of_what_is_stored_ends(recording: Told) -> None:
    recording.committing({B: 3}, wait=False, named=True)
    recording.came(4)
    recording.committing(recording.stored(), wait=False, named=False)
    recording.nothing_to_commit("LOCAL_NO_OFFSET")
    recording.committed({B: 3}, {B: ""})
    assert recording.commits() == [("async", {1: 3}, None), ("async", {0: 5}, "LOCAL_NO_OFFSET")]


def test_of_what_the_client_commits_as_it_is_closed_it_tells_who_it_was_before(recording: Told) -> None:
    """Nobody may ask it any more: librdkafka does not answer while its group ends."""
    recording.came(4)
    recording.closing()
    recording.identities.clear()
    recording.committed({A: 5}, {A: ""})
    assert recording.commits() == [("auto", {0: 5}, None)]


def test_an_answer_belongs_to_the_commit_that_named_it_and_else_to_the_client(recording: Told) -> None:
    recording.committing({A: 3}, wait=False, named=True)
    recording.committed({A: 2}, {A: ""})
    recording.committed({A: 3}, {A: REFUSED})
    assert recording.commits() == [("async", {0: 3}, REFUSED), ("auto", {0: 2}, None)]


def test_answers_come_in_the_order_of_the_commits_that_the_client_took_more_for(recording: Told) -> None:
    """It got to each of them when the next record was stored already: each answer looks like that of the next one."""
    for offset in (4, 5, 6):
        recording.came(offset)
        recording.committing(recording.stored(), wait=False, named=False)
    recording.came(7)
    for next_offset in (6, 7, 8):
        recording.committed({A: next_offset}, {A: ""})
        assert recording.commits()[: next_offset - 5] == [("async", {0: to}, None) for to in range(6, next_offset + 1)]
    assert recording.asked() == [{0: 5}, {0: 6}, {0: 7}]


def test_a_commit_that_names_its_offsets_does_not_answer_an_earlier_one(recording: Told) -> None:
    recording.came(4)
    recording.committing(recording.stored(), wait=False, named=False)
    recording.came(5)
    recording.committing({A: 6}, wait=False, named=True)
    recording.committed({A: 6}, {A: ""})
    recording.committed({A: 6}, {A: REFUSED})
    assert recording.commits() == [("async", {0: 6}, None), ("async", {0: 6}, REFUSED)]
    assert recording.asked() == [{0: 5}, None]


def test_several_partitions_of_which_some_have_nothing_new(recording: Told) -> None:
    recording.delivered([(*A, 4, b"k", b"v", None), (*B, 7, b"k", b"v", None)], stores=True)
    recording.committing(recording.stored(), wait=False, named=False)
    recording.came(5)
    recording.committing(recording.stored(), wait=False, named=False)
    recording.committed({A: 6, B: 8}, {A: "", B: ""})
    recording.nothing_to_commit("LOCAL_NO_OFFSET")
    recording.committing(recording.stored(), wait=False, named=False)  # of nothing, which leaves nothing
    recording.nothing_to_commit("LOCAL_NO_OFFSET")
    assert recording.commits() == [("async", {0: 6, 1: 8}, None), ("async", {0: 6, 1: 8}, "LOCAL_NO_OFFSET")]


def test_an_answer_that_nothing_is_stored_may_overtake_one_of_the_coordinator(recording: Told) -> None:
    recording.came(4)
    recording.committing(recording.stored(), wait=False, named=False)
    with recording.revoked_callback("revoked", [A]):
        pass
    recording.committing(recording.stored(), wait=False, named=False)
    recording.nothing_to_commit("LOCAL_NO_OFFSET")
    recording.committed({A: 5}, {A: ""})
    assert recording.commits() == [("async", {0: 5}, None)]


def test_an_answer_about_other_topics_answers_nothing(recording: Told) -> None:
    recording.came(4)
    recording.committing(recording.stored(), wait=False, named=False)
    recording.committing({}, wait=False, named=True)  # of offsets of other topics alone
    recording.committed({}, {})
    assert recording.commits() == [("async", {0: 5}, "?")]
    recording.committed({A: 5}, {A: ""})
    assert recording.commits() == [("async", {0: 5}, None)]
