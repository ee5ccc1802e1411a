"""Text logs of nodes: a run on a kept cluster has only its own lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from fencepost.clusters.kafka.node_files import REQUEST_LOG, NodeFiles, end_of_lines


def files(folder: Path) -> NodeFiles:
    homes = {1: folder / "broker-1"}
    for home in (folder / "broker-1", folder / "controller"):
        home.mkdir()
    return NodeFiles(
        cast(Any, None), folder, cast(Any, None), homes, folder / "controller", lambda topic, partition: -1
    )


def write(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as log:
        log.write(text)


def test_lines_from_before_are_left_out_and_one_that_was_being_written_is_whole(tmp_path: Path) -> None:
    all_of_it = files(tmp_path)
    requests, text = tmp_path / "broker-1" / REQUEST_LOG, tmp_path / "broker-1" / "broker-1.log"
    write(requests, "before\nbe")
    write(text, "started\n")
    own = all_of_it.from_now_on()
    write(requests, "gun\nafter\n")
    write(text, "rolled\n")
    write(tmp_path / "controller" / "controller.log", "new\n")
    assert list(own.request_log(1)) == ["begun", "after"]
    assert list(all_of_it.request_log(1)) == ["before", "begun", "after"]
    assert own.text_log(1) == (["rolled"], 15)
    assert all_of_it.text_log(1)[0] == ["started", "rolled"]
    own.collect_logs(tmp_path / "copied")
    assert (tmp_path / "copied" / "broker-1.log").read_text() == "rolled\n"
    assert (tmp_path / "copied" / f"broker-1-{REQUEST_LOG}").read_text() == "begun\nafter\n"
    assert (tmp_path / "copied" / "controller.log").read_text() == "new\n"


def test_a_file_without_a_complete_line_begins_at_its_begin(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for content, end in (("", 0), ("abc", 0), ("abc\n", 4), ("abc\nd", 4)):
        path.write_text(content)
        assert end_of_lines(path) == end
