"""What a client in Python commits by itself, in the history of a user's program."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from fencepost_member.config import LoopConfig, MemberConfig
from fencepost_member.instrument import consumer_names
from fencepost_member.instrument.program import InstrumentedProgram
from fencepost_member.instrument.python_recorder import PythonRecorder
from fencepost_member.recording.events import EventLog, read
from fencepost_member.recording.recorder import Recorder


class Partition(NamedTuple):
    topic: str
    partition: int


class Consumer:
    pass


A, OTHER = Partition("orders", 0), Partition("payments", 0)


class RebalanceInProgressError(Exception):
    errno = 27


@pytest.fixture
def tape(tmp_path: Path) -> PythonRecorder:
    config = MemberConfig(
        "member-0.1",
        0,
        0,
        str(tmp_path),
        "g",
        {"orders": {"0": 0}},
        "127.0.0.1:1",
        loop=LoopConfig(processed="next-poll"),
    )
    log, lane = EventLog(tmp_path / "events.jsonl", "member-0.1"), Recorder(tmp_path, "member-0.1").lane()
    program = SimpleNamespace(config=config, history=lambda claim: (log, lane), knows=lambda consumer: None)
    claim = consumer_names.claim(config, tmp_path / "claims")
    made = PythonRecorder(
        cast("InstrumentedProgram", program), claim, KEPT, {"group_id": "g"}, lambda _: ("a", 1), lambda _: {A: 7}
    )
    made.asks(["orders"], None)
    return made


KEPT = Consumer()


def commits(folder: Path) -> list[tuple[str, list[Any], str | None]]:
    last = {e["id"]: e for e in read(folder / "events.jsonl").events if e["kind"] == "commit"}
    assert all(e["end_ns"] > e["begin_ns"] for e in last.values())
    return [(e["detail"]["mode"], e["partitions"], e["error"]) for e in last.values()]


def test_a_commit_of_the_clients_own_is_told_with_its_answer(tape: PythonRecorder, tmp_path: Path) -> None:
    with tape.commits_by_itself({A: 5, OTHER: 3}):
        pass
    with pytest.raises(RebalanceInProgressError), tape.commits_by_itself({A: 6}):
        raise RebalanceInProgressError
    assert commits(tmp_path) == [
        ("auto", [["orders", 0, 5]], None),
        ("auto", [["orders", 0, 6]], "REBALANCE_IN_PROGRESS"),
    ]


def test_by_it_a_program_is_not_done_with_what_it_has_in_hand(tape: PythonRecorder, tmp_path: Path) -> None:
    tape.returned_records([SimpleNamespace(topic="orders", partition=0, offset=4, key=b"k", value=b"v", headers=())])
    with tape.commits_by_itself({A: 5}):
        pass
    try:
        raise ValueError
    except ValueError:
        tape.closing()
    tape.closed()
    (closed,) = (e for e in read(tmp_path / "events.jsonl").events if e["kind"] == "closed")
    assert closed["detail"]["records"] == 0


def test_one_that_the_program_waits_for_is_told_once(tape: PythonRecorder, tmp_path: Path) -> None:
    with tape.commits(None), tape.commits_by_itself({A: 7}):
        pass
    with tape.commits_by_itself({A: 8}):
        pass
    assert commits(tmp_path) == [("sync", [["orders", 0, 7]], None), ("auto", [["orders", 0, 8]], None)]


def test_of_other_topics_and_of_who_is_not_recorded_nothing_is_told(tape: PythonRecorder, tmp_path: Path) -> None:
    with tape.commits_by_itself({OTHER: 3}), tape.commits_by_itself({}):
        pass
    tape.closed()
    with tape.commits_by_itself({A: 9}):
        pass
    assert commits(tmp_path) == []
