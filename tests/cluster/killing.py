"""Whole runs that are killed, harness and all, at a moment that a number decides; what is left of an owner."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from cluster.worlds import LONG_S
from fencepost.clock import eventually
from fencepost.processes import reaper
from fencepost.scenario.scenario import Scenario

LASTS_S = 30.0  # when it is killed at the latest
LABEL = "fencepost-"


def iptables(*change: str) -> str:
    """What it says; nothing where there is none, or where it is not for us to use."""
    try:
        return subprocess.run(["iptables", "-w", "5", *change], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return ""


def rules_of(token: str) -> list[str]:
    """What the packet filter has of an owner: hook, chain, rules."""
    tables = (iptables("-t", table, "-S") for table in reaper.CHAINS.values())
    return [line for table in tables for line in table.splitlines() if token in line]


def left_of(token: str) -> list[object]:
    """The processes and the rules of an owner."""
    return [*reaper.owned(token), *rules_of(token)]


def _made(temporary: Path) -> list[Path]:
    """What is there, but for the queue of runs, which belongs to the machine."""
    return [path for path in temporary.iterdir() if not path.name.startswith(f"{LABEL}turns")]


def kill_a_run(scenario: Scenario, number: int, cluster: str, home: Path) -> tuple[float, list[Path], list[str]]:
    """Have ``fencepost run`` perform a scenario below ``home``, and kill it.

    Returns:
        After how many seconds, the folders of runs that are there, and the tokens of its owners. Nothing else of it is
        left.
    """
    temporary, runs, asked = home / "tmp", home / "runs", home / "scenario.json"
    temporary.mkdir()
    asked.write_text(json.dumps(scenario.to_json()))
    after_s = random.Random(number).uniform(0, LASTS_S)
    argv = [sys.executable, "-m", "fencepost", "run", asked, "--no-check", "--seed", str(number)]
    with (home / "said").open("wb") as said:
        harness = subprocess.Popen(
            [*argv, "--cluster", cluster, "--runs", runs],
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            harness.wait(after_s)
        tokens = [path.name.removeprefix(LABEL) for path in _made(temporary)]
        harness.send_signal(signal.SIGKILL)
        harness.wait()

    def left() -> list[object]:
        return [*_made(temporary), *(thing for token in tokens for thing in left_of(token))]

    eventually(lambda: not left(), LONG_S, "the reaper to remove everything", state=lambda: str(left()))
    return after_s, [*runs.glob("*")], tokens
