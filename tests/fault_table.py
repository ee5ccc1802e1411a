"""The table of faults: fault x target x back-end, and what witnesses saw of each in the tests of this machine.

A cell is filled by cluster tests: their fixture ``inject`` notes every look of a witness, and the looks of those tests
that passed stay below ``build/faults``, a file a session. A cell that a back-end does not permit says why. ::

    make faults      # prints it as Markdown, each cell of the last session that filled it
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from fencepost import faults
from fencepost.clock import NS, now_ns
from fencepost.clusters import backends
from fencepost.clusters.attach.backend import ABILITIES
from fencepost.clusters.capabilities import Abilities, needs
from fencepost.interfaces import Evidence, Fault, Injection, Selector, Target
from fencepost.model import serialization
from fencepost.model.settings import SESSION
from fencepost.schedule.entries import at
from fencepost.schedule.planning import make_plan
from fencepost.targets import brokers, idle, member

ITSELF = "itself"  # the fault chooses what it hits
SELECTORS: dict[str, Selector | None] = {
    "members": member(0),
    "idle members": idle(),
    "brokers": brokers((1,)),
    ITSELF: None,
}
FOLDER = Path("build/faults")
PROPERTY = "look"  # of a test's report
TOLD_MAX = 150
HEAD = ("fault", "target", "back-end", "witnessed", "measured effect", "s to prove", "healed", "s to heal", "red", "by")
# Cells that take long, each with the test that fills it beside what it is for: nothing needs to fill it once more.
FILLED = {
    "change_protocol-members-local": (
        "test_change_protocol.test_the_coordinator_converts_the_group_with_the_first_member_and_back_without_the_last_one"
    ),
    "change_protocol-members-docker": "test_docker_cluster.test_members_in_containers_change_their_protocol",
    "kill-brokers-local": "test_faults.test_a_killed_or_bounced_process_ends_its_way_and_begins_a_new_life",
    "bounce-brokers-local": "test_faults.test_a_killed_or_bounced_process_ends_its_way_and_begins_a_new_life",
    "kill-brokers-docker": (
        "test_docker_cluster.test_a_killed_or_bounced_container_ends_its_way_and_another_takes_its_place"
    ),
    "bounce-brokers-docker": (
        "test_docker_cluster.test_a_killed_or_bounced_container_ends_its_way_and_another_takes_its_place"
    ),
}

Look = Mapping[str, Any]


@cache
def offered() -> dict[str, Abilities]:
    """What each back-end can do."""
    own = {str(backend): backend.abilities for backend in (backends.local(), backends.docker())}
    return {**own, "attach": ABILITIES}


@dataclass(frozen=True)
class Cell:
    """A fault by its name, on a kind of target, with a back-end."""

    fault: str
    target: str
    backend: str

    @classmethod
    def of(cls, fault: Fault, target: Target, backend: str) -> Cell:
        """Where an injection belongs."""
        kind = "brokers" if target.brokers else next(iter(fault.hits - {"brokers"}), ITSELF)
        return cls(serialization.name_of(fault), kind, backend)

    def __str__(self) -> str:
        return f"{self.fault}-{self.target}-{self.backend}".replace(" ", "-")

    def made(self) -> Fault:
        """The fault, as it comes."""
        made: Fault = serialization.decode("fault", self.fault)
        return made

    def not_offered(self) -> str:
        """What the back-end does not offer for it; empty: it permits the fault."""
        missing = sorted(_needs(self) - set(offered()[self.backend]))
        return f"needs {' and '.join(missing)}, which {self.backend} has not" if missing else ""

    def missing_here(self) -> str:
        """What this machine lacks for it."""
        return next(filter(None, (offered()[self.backend][need]() for need in sorted(_needs(self)))), "")


@cache
def _needs(cell: Cell) -> frozenset[str]:
    (step,) = make_plan([at(0, cell.made(), SELECTORS[cell.target])], 0, {SESSION: 1.0}).steps
    return needs(step)


def cells(backend: str) -> list[Cell]:
    """Every fault on everything that it can be aimed at, with one back-end."""
    made = [getattr(faults, name)() for name in faults.__all__]
    names = [(serialization.name_of(fault), target) for fault in made for target in sorted(fault.hits or {ITSELF})]
    return [Cell(name, target, backend) for name, target in names]


def unfilled(backend: str) -> list[Cell]:
    """The cells that are left to fill: those that the back-end permits and no test of ``FILLED`` fills."""
    return [cell for cell in cells(backend) if not cell.not_offered() and str(cell) not in FILLED]


class Noted:
    """An injection of a test, of which every look of the witness is noted with the test. Satisfies ``Injection``."""

    def __init__(self, injection: Injection, cell: Cell, begun_ns: int, test: pytest.Item) -> None:
        """It began at ``begun_ns``."""
        self._injection, self._cell, self._since_ns, self._test = injection, cell, begun_ns, test
        self._undone = False

    def proven(self) -> Evidence:
        """As the injection."""
        return self._noted("proven", self._injection.proven())

    def undo(self) -> None:
        """As the injection."""
        if not self._undone:
            self._undone, self._since_ns = True, now_ns()
        self._injection.undo()

    def healed(self) -> Evidence:
        """As the injection."""
        return self._noted("healed", self._injection.healed())

    def _noted(self, what: str, evidence: Evidence) -> Evidence:
        look = {
            **vars(self._cell),
            "look": what,
            "seen": evidence.took_effect,
            "seconds": round((evidence.at_ns - self._since_ns) / NS, 3),
            "told": evidence.what,
            "test": getattr(self._test, "originalname", self._test.name),
        }
        self._test.user_properties.append((PROPERTY, look))
        return evidence


class FaultTable:
    """A pytest plugin that keeps what witnesses saw in tests that passed."""

    def __init__(self) -> None:
        self._looks: list[Look] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._looks += [look for name, look in report.user_properties if name == PROPERTY]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        worker = hasattr(session.config, "workerinput")  # of pytest-xdist: who started it hears of all tests
        if self._looks and not worker:
            folder = session.config.rootpath / FOLDER
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}.jsonl"
            file.write_text("".join(f"{json.dumps(look)}\n" for look in self._looks))


def kept(folder: Path = FOLDER) -> dict[Cell, list[Look]]:
    """The looks by cell, each cell's from the last session that filled it."""
    found: dict[Cell, list[Look]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        session: dict[Cell, list[Look]] = {}
        for look in map(json.loads, file.read_text().splitlines()):
            session.setdefault(Cell(look["fault"], look["target"], look["backend"]), []).append(look)
        found |= session
    return found


def markdown(found: Mapping[Cell, Sequence[Look]]) -> str:
    """The table of all cells. ``witnessed``, ``healed``: how often; ``red``: how often a witness saw nothing, as a test
    that passed had taken the effect away, or what heals it.
    """
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for cell in sorted((cell for backend in offered() for cell in cells(backend)), key=lambda c: (c.fault, c.target)):
        lines.append(f"| `{cell.fault}` | {cell.target} | {cell.backend} | {' | '.join(_row(cell, found))} |")
    return "\n".join(lines)


def _row(cell: Cell, found: Mapping[Cell, Sequence[Look]]) -> Iterator[str]:
    looks = found.get(cell, ())
    proven, healed = ([s for s in looks if s["look"] == what and s["seen"]] for what in ("proven", "healed"))
    if not proven:
        why = cell.not_offered() or cell.missing_here() or "no test has filled it on this machine yet"
        yield from ("no", why, *[""] * (len(HEAD) - 5))
        return
    yield str(len(proven))
    yield _clipped(proven[0]["told"])
    yield _seconds(proven)
    heals = cell.made().heals
    yield str(len(healed)) if heals else "nothing to heal"
    yield _seconds(healed) if heals else ""
    yield str(sum(not look["seen"] for look in looks))
    tests = list(dict.fromkeys(look["test"].removeprefix("test_").replace("_", " ") for look in proven))
    yield f"{tests[0]} (+{len(tests) - 1})" if len(tests) > 1 else tests[0]


def _seconds(looks: Sequence[Look]) -> str:
    return f"{median(look['seconds'] for look in looks):.2f}" if looks else ""


def _clipped(text: str) -> str:
    text = text.replace("|", "/")
    return text if len(text) <= TOLD_MAX else f"{text[: TOLD_MAX - 1]}…"


if __name__ == "__main__":
    print(markdown(kept()))
