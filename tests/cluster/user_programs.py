"""Users' programs in tests: a group whose members are the file ``program.py``; runs that are judged without Spark."""

from __future__ import annotations

import sys
from pathlib import Path

from fencepost import Group, Scenario, runner
from fencepost.checkers.judge import judge
from fencepost.checkers.spark.detector import find_here
from fencepost.model import Severity, Verdict

# The module ``fakes`` of a program that prints its effects into the file ``told``: topic, partition and offset a line.
EFFECTS = """
def told(settings):
    with open("told") as lines:
        for topic, partition, offset in map(str.split, filter(lambda line: line.endswith("\\n"), lines)):
            yield topic, int(partition), int(offset)
"""


def group(client: str, members: int = 2) -> Group:
    """So many members, each of which is a process of the program, with this client."""
    return Group(
        command=[sys.executable, "program.py"],
        client=client,
        members=members,
        protocol="eager",
        config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000},
    )


def performed(scenario: Scenario, folder: Path) -> tuple[Path, Verdict]:
    """The run's folder, below this one, and what is said of it; prints what members said last."""
    run = runner.run(scenario, plan=scenario.plan(1), runs=folder)
    for log in (run / "logs").glob("member-*"):
        print(log.name, log.read_text()[-2000:])
    return run, judge(run, find_here)


def judged(run: Path, processed: str) -> Verdict:
    """The verdict on a stored run by another rule for when a record counts as processed."""
    return judge(run, find_here, processed=processed)


def broken(verdict: Verdict) -> set[str]:
    """The kinds that break a promise."""
    return {f.kind for check in verdict.checks for f in check.findings if f.severity is Severity.VIOLATION}
