"""What tables answer of their own rows, each by a few rows written here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost.checkers.expectations import _inside
from fencepost.checkers.kernel.aggregates import Aggregates, Label, Totals
from fencepost.checkers.kernel.partitioning import read_groups
from fencepost.checkers.spark.detector import _facts
from fencepost.checkers.tables.integrity import _check_actors
from fencepost.checkers.tables.rows import Window
from fencepost.checkers.tables.tables import Tables
from fencepost.history import HARNESS, EventKind


def tables(**rows: Any) -> Any:
    return SimpleNamespace(**rows)


def advances(*offsets: int, declared_at: int = -1, log_start: int = 0) -> list[int]:
    """The offsets of the commits that took the partition on; ``declared_at``: the place of one after a declared act."""
    rows = [SimpleNamespace(offset=offset, at_ns=place) for place, offset in enumerate(offsets)]
    reported = tables(
        accepted_of={3: rows},
        declared=lambda tp, at_ns: "an act" if (tp, at_ns) == (3, declared_at) else "",
        log_start={3: log_start}.get,
    )
    return [row.offset for row in Tables.advances(reported, 3)]


def test_a_commit_takes_a_partition_on_that_is_above_all_before_it_since_it_was_taken_back() -> None:
    assert advances() == []
    assert advances(5, 5, 3, 6) == [5, 6]
    assert advances(5, 0, 4) == [5], "no offset below 0 is a deletion"
    assert advances(7, 8, log_start=7) == [8], "a commit at the start of the log takes nothing on"
    assert advances(7, -1, 7, 8, log_start=7) == [8]
    assert advances(3, 8, log_start=7) == [3, 8], "the start was moved past the first commit"
    assert advances(5, -1, 4) == [5, 4]
    assert advances(5, 2, 4, declared_at=1) == [5, 4]


def test_who_had_a_partition_last_is_nobody_where_nobody_is_known() -> None:
    given = {3: [SimpleNamespace(incarnation=name) for name in ("a", "b", "")], 4: [SimpleNamespace(incarnation="")]}
    reported = tables(given_of=given)
    assert [Tables.last_coordinator_owner(reported, tp) for tp in (3, 4, 5)] == ["b", "", ""]


def test_a_partition_was_made_anew_from_the_begin_of_that_to_its_end() -> None:
    act = SimpleNamespace(what="anew", skipped=0, begin_ns=10, end_ns=20)
    reported = tables(acts_of={3: [act, SimpleNamespace(what="other", skipped=-1, begin_ns=0, end_ns=90)]})
    assert [Tables.recreated(reported, 3, ns) for ns in (9, 10, 20, 21)] == ["", *["declared act: anew"] * 2, ""]


def test_a_moment_without_uncertainty_is_inside_from_the_begin_on_and_not_at_the_end() -> None:
    assert [_inside(Window(10, 20), ns) for ns in (9, 10, 19, 20)] == [False, True, True, False]


def test_what_the_harness_and_members_do_not_tell_is_noted_of_each(tmp_path: Path) -> None:
    notes: list[tuple[str, ...]] = []
    reader: Any = SimpleNamespace(run=tmp_path, note=lambda *note: notes.append(note))
    events = [{"kind": EventKind.UNRECORDED, "actor": actor, "detail": {"text": "x"}} for actor in (HARNESS, "a")]
    _check_actors(reader, events, {})
    files = [f"history/events/{HARNESS}.jsonl", "history/events/a.jsonl", "history/delivered/a.parquet"]
    assert [note[:2] for note in notes] == list(zip(("effects", "events", "delivered"), files, strict=True))


def test_files_that_hold_no_records_are_damage_of_their_part(tmp_path: Path) -> None:
    folder = tmp_path / "history" / "produced"
    folder.mkdir(parents=True)
    (folder / "producer-0.parquet").write_text("no Parquet")
    groups, damage = read_groups(tmp_path)
    assert groups == []
    assert [(one.part, one.file) for one in damage] == [
        ("delivered", "history/delivered"),
        ("produced", "history/produced/producer-0.parquet"),
        ("log", "history/log"),
    ]
    assert damage[0].what == "it holds no Parquet file"
    assert damage[1].what.startswith("it cannot be read: ")


def test_what_a_worker_could_not_read_is_damage_of_its_part() -> None:
    aggregates = Aggregates()
    aggregates.put("#damaged", -1, Label(("history/delivered/a.parquet",), "torn"), Totals(1))
    (damage,) = _facts(aggregates, {}, ()).damage
    assert (damage.part, damage.file, damage.what) == ("delivered", "history/delivered/a.parquet", "torn")


@pytest.mark.parametrize("actor", ["a", HARNESS])
def test_other_events_are_no_note(tmp_path: Path, actor: str) -> None:
    reader: Any = SimpleNamespace(run=tmp_path, note=lambda *note: pytest.fail(str(note)))
    _check_actors(reader, [{"kind": EventKind.STARTED, "actor": actor, "detail": {}}], {})
