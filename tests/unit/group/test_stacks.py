"""Where a program is, from the stacks that it printed."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from fencepost.group import stacks
from fencepost.group.incarnation import LATE_S, Incarnation, RunPaths
from fencepost.interfaces.process import Interpreter
from fencepost.processes.owner import ProcessOwner
from fencepost_member.recording.events import EventLog
from fencepost_member.stacks import STACKS

PRINTED = """a line of the program
Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 355 in wait
  File "/app/shop/worker.py", line 12 in drain
  File "/usr/lib/python3.12/threading.py", line 1030 in _bootstrap

Current thread 0x00007f2 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 1149 in join
  File "/app/shop/consumer.py", line 83 in main
  File "/app/shop/consumer.py", line 90 in <module>
"""


def test_the_main_thread_counts_and_its_innermost_frame_outside_of_libraries() -> None:
    assert stacks.place(PRINTED) == "consumer.py, line 83, in main"
    assert [len(frames) for frames in stacks.threads(PRINTED)] == [3, 3]


def test_a_program_that_was_started_as_a_module_has_the_frames_of_runpy() -> None:
    text = PRINTED.replace(
        '  File "/app/shop/consumer.py", line 90 in <module>',
        '  File "/app/shop/consumer.py", line 90 in <module>\n  File "<frozen runpy>", line 88 in _run_code\n'
        '  File "<frozen runpy>", line 198 in _run_module_as_main',
    )
    assert stacks.complete(text)
    assert stacks.place(text) == "consumer.py, line 83, in main"


def test_a_member_of_our_own_is_where_its_own_code_is() -> None:
    text = PRINTED.replace("/app/shop/", "/tmp/import/fencepost_member/")
    assert stacks.place(text) == "consumer.py, line 83, in main"


@pytest.mark.parametrize(("text", "place"), [("", ""), ("nothing of the kind\n", ""), (PRINTED[:60], "")])
def test_without_stacks_the_place_is_unknown(text: str, place: str) -> None:
    assert not stacks.complete(text)
    assert stacks.place(text) == place


PROGRAM = """
import json, os, signal, sys, threading
from pathlib import Path
from fencepost_member.recording.events import EventLog
from fencepost_member.stacks import print_on_signal

def for_ever():
    threading.Event().wait()

print_on_signal()
signal.signal(signal.SIGTERM, lambda *_: None)
config = json.loads(Path(sys.argv[1]).read_text())
events = EventLog(Path(config["run"]) / "events" / (config["actor"] + ".jsonl"), config["actor"])
events.note("started", detail={"pid": os.getpid()})
for_ever()
"""


@pytest.mark.skipif(STACKS is None, reason="this system has no real-time signals")
def test_a_process_that_did_not_end_in_time_says_where_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hangs.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "events").mkdir()
    monkeypatch.setattr("fencepost.group.incarnation.LATE_S", 0)
    with ProcessOwner.open(tmp_path) as owner:
        home = RunPaths(owner, EventLog(tmp_path / "harness.jsonl", "harness"), tmp_path, tmp_path)
        life = Incarnation(home, "member-0.1", "hangs", {}, Interpreter(import_path=(tmp_path,)))
        life.wait_started()
        life.signal(signal.SIGTERM)
        life.signal(signal.SIGKILL)
        assert life.wait_ended(20) == -signal.SIGKILL
    events = [json.loads(line) for line in (tmp_path / "harness.jsonl").read_text().splitlines()]
    (ended,) = (event["detail"] for event in events if event["kind"] == "ended")
    assert ended["place"] == "hangs.py, line 8, in for_ever"
    assert ended["how"] == "killed"
    assert "hangs.py" in (tmp_path / "member-0.1.log").read_text()


def test_programs_have_some_seconds_before_they_are_late() -> None:
    assert 1 <= LATE_S < 15
