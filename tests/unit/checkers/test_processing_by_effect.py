"""Records that are processed when their effects are there: what a function tells of these, and what the judge makes of
it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fencepost.checkers.tables import load, load_records
from fencepost.checkers.tables.processing_rules import as_processed
from fencepost.errors import MemberError
from fencepost.evidence import audit, effects, program_effects
from fencepost.evidence.program_effects import ProgramEffects
from fencepost.evidence.sealing import parquet_records
from fencepost.evidence.sealing.seal import seal
from fencepost.history import HARNESS, LOG_COLUMNS, EventKind, RecordState
from fencepost.history.run_folder import RunFolder
from fencepost.model.run_names import RunNames
from fencepost.processes.owner import ProcessOwner
from fencepost.workloads import OwnProgram, PollLoop
from fencepost_member.recording.events import EventLog, read
from fencepost_member.recording.recorder import Recorder

ENTRIES = [{"tp": n, "topic": "run-orders", "partition": n, "log_start": 0, "log_end": 9} for n in range(2)]
FUNCTIONS = """
import threading

def places(settings):
    return [("orders", 1, 4), ["orders", 0, 8], ("orders", 1, 4)]

def numbers(settings):
    print("anything", settings["bootstrap.servers"], settings["security.protocol"])
    yield from (5, 6, 6, 99)

def beyond(settings):
    return [("orders", 1, 9)]

def mixed(settings):
    return [6, 5, ("orders", 0, 0), 6, 5]

def elsewhere(settings):
    return [("bills", 0, 0)]

def wrong(settings):
    return [("orders", 1)]

def flag(settings):
    return [True]

def raises(settings):
    raise KeyError("no such table")

def hangs(settings):
    threading.Event().wait()
"""


class Cluster:
    """The addresses of a cluster."""

    access: dict[str, str] = {"security.protocol": "plaintext"}  # noqa: RUF012

    def bootstrap(self) -> str:
        """Where its brokers are."""
        return "broker:9092"


@pytest.fixture(scope="module")
def owner() -> Iterator[ProcessOwner]:
    with ProcessOwner.open() as owner:
        yield owner


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    (tmp_path / "done.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    return RunFolder.create(tmp_path, "effects", 1)


def of(function: str, owner: ProcessOwner, folder: RunFolder, **options: Any) -> ProgramEffects:
    workload = OwnProgram("effect", f"done:{function}", **options)
    return ProgramEffects(workload, Cluster(), owner, folder.logs, RunNames("g", "run-"))  # type: ignore[arg-type]


def told(function: str, owner: ProcessOwner, folder: RunFolder, **options: Any) -> list[dict[str, Any]]:
    """The events that tell effects of ``function``."""
    path = folder.history / "events" / f"{HARNESS}.jsonl"
    of(function, owner, folder, **options).collect(folder.history, ENTRIES, EventLog(path, HARNESS))
    return read(path).events


def log(folder: RunFolder, *rows: tuple[int, int, int]) -> None:
    """The log, of (tp, offset, seq) of the first producer, and of one record of a stranger's; the key is the seq."""
    every = [(*row, 0, row[-1]) for row in rows] + [(0, 0, 6, -1, -1)]
    names = ("tp", "offset", "seq", "writer", "key")
    found = {name: np.array(column) for name, column in zip(names, zip(*every, strict=True), strict=True)}
    zeros = {name: np.zeros(len(every), np.int64) for name in LOG_COLUMNS if name not in names}
    parquet_records.write(folder.history / audit.FILE, LOG_COLUMNS, [{**found, **zeros}])


def places(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    assert {event["kind"] for event in events} == {EventKind.EFFECT}
    return sorted(tuple(place) for event in events for place in event["partitions"])


def test_effects_name_their_records_by_place(owner: ProcessOwner, folder: RunFolder) -> None:
    assert places(told("places", owner, folder)) == [
        ("run-orders", 0, 8),
        ("run-orders", 1, 4),
        ("run-orders", 1, 4),
    ]


def test_or_by_the_number_that_their_payload_was_made_by(owner: ProcessOwner, folder: RunFolder) -> None:
    log(folder, (1, 3, 5), (0, 7, 6), (0, 8, 7))
    assert places(told("numbers", owner, folder)) == [("run-orders", 0, 7), ("run-orders", 0, 7), ("run-orders", 1, 3)]


def test_of_a_record_that_a_client_wrote_twice_nobody_knows_which_one_it_is(
    owner: ProcessOwner, folder: RunFolder
) -> None:
    log(folder, (1, 3, 5), (1, 4, 5), (0, 7, 6), (0, 8, 6))
    found = places(told("numbers", owner, folder))
    assert found == [("run-orders", 0, 7), ("run-orders", 0, 8), ("run-orders", 1, 3), ("run-orders", 1, 4)]


def test_effects_in_order_keep_it_and_have_the_keys_of_their_records(owner: ProcessOwner, folder: RunFolder) -> None:
    log(folder, (1, 3, 5), (0, 7, 6), (0, 8, 6))
    events = told("mixed", owner, folder, effects_in_order=True)
    seen = [(tuple(place), e["detail"]["key"]) for e in sorted(events, key=_seq) for place in e["partitions"]]
    first, second, stranger = ("run-orders", 0, 7), ("run-orders", 1, 3), ("run-orders", 0, 0)
    assert seen == [(first, 6), (second, 5), (stranger, -1), (("run-orders", 0, 8), 6), (second, 5)]


def _seq(event: dict[str, Any]) -> int:
    return int(event["detail"]["seq"])


@pytest.mark.parametrize(
    ("function", "options", "sentence"),
    [
        ("beyond", {}, "done:beyond reports an effect of ('orders', 1, 9), but there is no such record"),
        ("elsewhere", {}, "done:elsewhere reports an effect of ('bills', 0, 0), but there is no such record"),
        (
            "numbers",
            {"producers": 2},
            "done:numbers names records by seq, but 2 producers each count their own",
        ),
        ("wrong", {}, "expected an effect (topic, partition, offset) or the seq of a payload, found ('orders', 1)"),
        ("flag", {}, "expected an effect (topic, partition, offset) or the seq of a payload, found True"),
        ("raises", {}, "the function of effects done:raises failed: KeyError: 'no such table'"),
        ("hangs", {}, "the function of effects done:hangs took longer than 2 s"),
    ],
)
def test_what_cannot_be_understood_leaves_effects_and_deliveries_in_the_dark(
    owner: ProcessOwner,
    folder: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    options: dict[str, Any],
    sentence: str,
) -> None:
    monkeypatch.setattr(program_effects, "READ_S", 2 if function == "hangs" else 60)
    (event,) = told(function, owner, folder, **options)
    assert event["kind"] == EventKind.UNRECORDED
    assert sentence in event["detail"]["text"]
    assert event["detail"]["parts"] == ["effects", "delivered"]


def test_a_function_that_is_not_there_is_refused(owner: ProcessOwner, folder: RunFolder) -> None:
    with pytest.raises(MemberError, match="the function of effects done:nothing cannot be imported: AttributeError"):
        of("nothing", owner, folder)


def test_effects_are_awaited_until_there_are_as_many_as_records(
    owner: ProcessOwner, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_effects, "AGAIN_S", 0)
    asked = of("places", owner, folder)
    assert [asked.there(count) for count in (1, 2, 3)] == [True, True, False], "one is there twice"
    assert asked.state == "2 of 3 records have one"
    failing = of("raises", owner, folder)
    assert not failing.there(0)
    assert "no such table" in failing.state


def test_it_is_asked_from_time_to_time_alone(owner: ProcessOwner, folder: RunFolder) -> None:
    asked = of("places", owner, folder)
    assert asked.there(2)
    assert not asked.there(2)


def test_who_has_no_such_function_waits_for_nothing_and_tells_nothing(owner: ProcessOwner, folder: RunFolder) -> None:
    events = EventLog(folder.history / "events" / f"{HARNESS}.jsonl", HARNESS)
    for workload in (OwnProgram(), PollLoop()):
        asked = ProgramEffects(workload, Cluster(), owner, folder.logs, RunNames("g"))  # type: ignore[arg-type]
        assert asked.there(99)
        asked.collect(folder.history, ENTRIES, events)
    assert read(folder.history / "events" / f"{HARNESS}.jsonl").events == []


def sealed(folder: RunFolder, rule: str, *affected: int, unknown: str = "") -> dict[tuple[str, int], list[int]]:
    """Two members get offsets 0 to 2 of a partition, the second one later; with what the judge makes of it."""
    events = EventLog(folder.history / "events" / f"{HARNESS}.jsonl", HARNESS)
    for actor in ("member-0.1", "member-1.1"):
        recorder = Recorder(folder.history / "segments", actor, 8)
        lane = recorder.lane()
        for offset in range(3):
            index = lane.delivered(1, offset, offset, 0, offset, 0, offset, 0)
            if offset != 1:
                lane.begin(index)
                lane.done(index)
        recorder.close()
    effects.record([effects.RecordedEffect("run-orders", 1, offset, HARNESS, 1, 1) for offset in affected], events)
    if unknown:
        effects.record_unknown(events, unknown, program_effects.PARTS)
    workload = {"type": "own_program", "processed": rule}
    folder.write_json("scenario.json", {"scenario": {"group": {}, "promises": [], "workload": workload}})
    folder.write_json("history/partitions.json", {"partitions": ENTRIES})
    seal(folder.path)
    found = {}
    rules = load(folder.path).inferred_of
    for recorded in load_records(folder.path).delivered:
        row = as_processed(recorded, rules.get((recorded.incarnation, recorded.tp), ()))
        early = [row.begin_ns == row.delivered_ns, row.done_ns == row.delivered_ns]
        found[row.incarnation, row.offset] = [row.state, *map(int, early)]
        assert row.begin_ns == row.done_ns == 0 or row.state == RecordState.DONE
        assert recorded.state == (RecordState.DELIVERED if row.offset == 1 else RecordState.DONE), (
            "the seal keeps what was recorded"
        )
    return found


def test_the_first_delivery_of_a_record_with_an_effect_stands_for_all_of_them(folder: RunFolder) -> None:
    nothing, done = [RecordState.DELIVERED, 0, 0], [RecordState.DONE, 1, 1]
    assert sealed(folder, "effect", 0, 1, 1) == {
        ("member-0.1", 0): done,
        ("member-0.1", 1): done,
        ("member-0.1", 2): nothing,
        **{("member-1.1", offset): nothing for offset in range(3)},
    }


@pytest.mark.parametrize(("rule", "unknown"), [("commit", ""), ("effect", "the table is gone")])
def test_by_another_rule_or_where_effects_are_unknown_nothing_changes(
    folder: RunFolder, rule: str, unknown: str
) -> None:
    found = sealed(folder, rule, 1, unknown=unknown)
    assert [state for state, *_ in found.values()] == [RecordState.DONE, RecordState.DELIVERED, RecordState.DONE] * 2
