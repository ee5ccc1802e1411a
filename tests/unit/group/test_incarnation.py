"""How a life ended: who ends without being asked to ended by itself, whatever its exit code says."""

from __future__ import annotations

import json
import signal

import pytest

from fencepost.clock import eventually
from fencepost.group.incarnation import Incarnation, RunPaths
from fencepost.interfaces.process import Interpreter
from fencepost.processes.owner import ProcessOwner
from fencepost_member.recording.events import EventLog

WITHIN_S = 20.0
PROGRAM = """
import os, pathlib, signal, threading
asked = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: asked.set())
pathlib.Path(__file__).with_name("ready").touch()
"""


@pytest.mark.parametrize(
    ("program", "sent", "how", "exit_code"),
    [
        ("asked.wait()", signal.SIGTERM, "closed", 0),
        ("asked.wait()", signal.SIGKILL, "killed", -9),
        ("os.kill(os.getpid(), signal.SIGKILL)", None, "crashed", -9),  # as the kernel does when memory runs out
        ("os._exit(0)", None, "crashed", 0),
        ("os._exit(3)", None, "crashed", 3),
        ("asked.wait(); os.abort()", signal.SIGTERM, "crashed", -6),
    ],
)
def test_a_life_that_nobody_ended_ended_by_itself(tmp_path, program, sent, how, exit_code):
    (tmp_path / "program.py").write_text(PROGRAM + program, encoding="utf-8")
    with ProcessOwner.open(tmp_path) as owner:
        home = RunPaths(owner, EventLog(tmp_path / "harness.jsonl", "harness"), tmp_path, tmp_path)
        life = Incarnation(home, "member-0.1", "program", {}, Interpreter(import_path=(tmp_path,)))
        if sent:
            eventually((tmp_path / "ready").exists, WITHIN_S, "the program to run", state=life.log_end)
            life.signal(sent)
        assert life.wait_ended(WITHIN_S) == exit_code
    reported = [json.loads(line) for line in (tmp_path / "harness.jsonl").read_text().splitlines()]
    (ended,) = (e["detail"] for e in reported if e["kind"] == "ended")
    assert ("asked_ns" in ended) is (sent == signal.SIGTERM)
    assert {**ended, "asked_ns": 0} == {"exit_code": exit_code, "how": how, "asked_ns": 0}
