"""The event log: one line per write, ends that repeat their starts, and readers that live with torn lines."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from fencepost_member.recording.events import EventLog, read

ACTOR = "member-2.1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events" / f"{ACTOR}.jsonl"


def test_an_end_repeats_its_begin_under_the_same_id(path: Path) -> None:
    log = EventLog(path, ACTOR)
    commit = log.begin("commit", partitions=[("orders", 1, 5)], generation=4, detail={"mode": "sync"})
    log.end(commit, outcome="fail", error="ILLEGAL_GENERATION")
    begun, ended = read(path).events
    assert begun["end_ns"] == 0
    assert ended["end_ns"] >= begun["begin_ns"] > 0
    assert ended == {**begun, "end_ns": ended["end_ns"], "outcome": "fail", "error": "ILLEGAL_GENERATION"}
    assert ended["partitions"] == [["orders", 1, 5]]


def test_a_note_has_no_duration_unless_its_times_are_given(path: Path) -> None:
    log = EventLog(path, ACTOR)
    log.note("assigned", partitions=[("orders", 1), ["orders", 2, None]])
    log.note("phase", begin_ns=5, end_ns=9)
    first, second = read(path).events
    assert first["begin_ns"] == first["end_ns"] > 0
    assert first["partitions"] == [["orders", 1, None], ["orders", 2, None]]
    assert (second["begin_ns"], second["end_ns"]) == (5, 9)


def test_an_event_about_another_actor_has_an_id_that_actor_never_gives(path: Path) -> None:
    log = EventLog(path, "harness")
    assert log.note("launched", actor=ACTOR) < 0
    other = log.begin("ended", actor=ACTOR)
    log.end(other)
    assert log.note("phase") > 0
    assert [event["actor"] for event in read(path).events] == [ACTOR, ACTOR, ACTOR, "harness"]


def test_what_no_event_has_is_refused_and_nothing_is_written(path: Path) -> None:
    log = EventLog(path, ACTOR)
    with pytest.raises(TypeError, match="unknown field offset"):
        log.note("seek", offset=5)
    with pytest.raises(TypeError):
        log.note("seek", detail={"what": object()})
    assert read(path).events == []


def test_an_id_that_did_not_begin_does_not_end(path: Path) -> None:
    log = EventLog(path, ACTOR)
    commit = log.begin("commit")
    log.end(commit)
    with pytest.raises(KeyError):
        log.end(commit)


def test_many_threads_write_whole_lines_with_ids_of_their_own(path: Path) -> None:
    log = EventLog(path, ACTOR)

    def work() -> None:
        for n in range(200):
            log.end(log.begin("commit", detail={"n": n, "padding": "x" * 500}))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    events, damage, next_at = read(path)
    assert not damage
    assert next_at == path.stat().st_size
    assert sorted(event["id"] for event in events) == sorted([*range(1, 801)] * 2)


def test_a_reader_goes_on_where_it_stopped_and_leaves_a_torn_line_for_later(path: Path) -> None:
    log = EventLog(path, ACTOR)
    assert read(path.with_name("not-there.jsonl")) == ([], [], 0)
    log.note("started")
    log.note("assigned")
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    first = read(path)
    assert [event["kind"] for event in first.events] == ["started"]
    path.write_bytes(whole)
    second = read(path, first.next_at)
    assert [event["kind"] for event in second.events] == ["assigned"]
    assert read(path, second.next_at).events == []


def test_lines_that_are_no_events_become_sentences_with_their_place(path: Path) -> None:
    log = EventLog(path, ACTOR)
    log.note("started")
    at = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"garbage \xff\x00\r x\n[1,2]\n{}\n" + b"[" * 100_000 + b"\n")
    log.note("closed")
    events, damage, _ = read(path)
    assert [event["kind"] for event in events] == ["started", "closed"]
    assert len(damage) == 4
    assert damage[0].startswith(f"the line at byte {at} is not an event: ")
    assert "it is not a JSON object" in damage[1]
    assert "it has no key actor, begin_ns" in damage[2]


def test_hostile_texts_come_back_as_they_were(path: Path) -> None:
    text = 'a "quote", a\nline\r\u2028, a \x00, a lone \ud800 and \U0001f9e8'
    EventLog(path, ACTOR).note("error", error=text, detail={text: text})
    (event,) = read(path).events
    assert event["error"] == text
    assert event["detail"] == {text: text}
    assert json.loads(path.read_text("ascii"))["error"] == text
