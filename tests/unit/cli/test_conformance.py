"""``fencepost conform`` applies the rules of a run to a program's output, and reports each fault with its line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stage import Shell

from fencepost.cli.conformance import UNREPORTED
from fencepost_member.json_lines.reading import NAMES

PLACE = {"topic": "orders", "partition": 0}
RECORD = {"name": "record_data", **PLACE, "offset": 3, "key": "7", "value": "v"}
GOOD = [
    {"name": "startup_complete"},
    {"name": "partitions_assigned", "partitions": [PLACE]},
    {"name": "poll_started"},
    RECORD,
    {"name": "records_consumed", "count": 1, "partitions": [{**PLACE, "count": 1, "minOffset": 3, "maxOffset": 3}]},
    {"name": "shutdown_complete"},
]


def text(*lines: dict[str, Any]) -> str:
    return "".join(json.dumps({"timestamp": 1, **line}) + "\n" for line in lines)


def test_a_program_that_conforms_hears_what_it_does_not_tell(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text("hello\n" + text(*GOOD))
    code, out, _ = shell("conform", str(tmp_path / "lines.jsonl"))
    assert code == 0
    assert "1 partitions_assigned, 1 poll_started, 1 record_data" in out
    assert "and 1 lines of other output" in out
    assert "missing: commit_started: the program must wait for the answer" in out
    assert "missing: poll_started" not in out
    assert "every line conforms" in out


def test_who_never_resumes_what_it_pauses_hears_what_that_means(shell: Shell, tmp_path: Path) -> None:
    reported = [*GOOD[:2], {"name": "partitions_paused", "partitions": [PLACE]}, *GOOD[2:]]
    (tmp_path / "lines.jsonl").write_text(text(*reported))
    code, out, _ = shell("conform", str(tmp_path / "lines.jsonl"))
    assert code == 0
    assert "1 partitions_paused, " in out
    assert "missing: partitions_paused" not in out
    assert "missing: partitions_resumed: a paused partition counts as paused until it is revoked" in out


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([*GOOD[:3], {**RECORD, "offset": "3"}], 'line 4: record_data: offset is "3", it must be of type integer'),
        (GOOD[1:], "line 1: partitions_assigned precedes startup_complete, which must be the first line"),
        (
            [*GOOD[:3], GOOD[4]],
            "line 4: records_consumed counts 1 records of orders-0, but there were 0 record_data lines",
        ),
        ([], "line 0: the output ends without a line of the format; startup_complete must be the first"),
    ],
)
def test_each_fault_is_told_with_its_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, lines: list[dict[str, Any]], sentence: str
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text(*lines).encode())))
    code, out, _ = shell("conform", "-")
    assert code == 1
    assert sentence in out
    assert "lines are invalid" in out


def test_a_file_that_is_not_there_is_bad_usage(shell: Shell) -> None:
    code, _, err = shell("conform", "nowhere.jsonl")
    assert code == 2
    assert "nowhere.jsonl cannot be read: No such file" in err


def test_what_may_be_left_out_are_names_of_lines() -> None:
    assert set(UNREPORTED) < set(NAMES)
