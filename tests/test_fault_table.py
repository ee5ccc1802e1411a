"""No cell of the table of faults is skipped without a reason, and only tests that passed fill it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from cluster.docker import test_docker_cluster
from cluster.faults import test_change_protocol, test_faults, test_witnesses
from fault_table import FILLED, FOLDER, Cell, cells, kept, markdown, offered

FILLING = (test_change_protocol, test_docker_cluster, test_faults, test_witnesses)
MODULES = {module.__name__.rpartition(".")[2]: module for module in FILLING}
KILL = Cell("kill", "members", "local")


def parameters(module: ModuleType) -> set[Cell]:
    """The cells for which the tests of a module are performed."""
    marks = [mark for test in vars(module).values() for mark in getattr(test, "pytestmark", ()) if callable(test)]
    given = [value for mark in marks if mark.name == "parametrize" for value in mark.args[1]]
    values = [value for one in given for value in getattr(one, "values", (one,))]
    return {value for value in values if isinstance(value, Cell)}


def test_a_test_fills_each_cell_or_its_back_end_lacks_something() -> None:
    filled = {cell for module in MODULES.values() for cell in parameters(module)}
    every = {cell for backend in offered() for cell in cells(backend)}
    empty = {cell for cell in every - filled if not cell.not_offered()}
    assert {str(cell) for cell in empty} == set(FILLED)
    assert all(hasattr(MODULES[module], test) for module, _, test in (name.partition(".") for name in FILLED.values()))
    assert filled <= every
    assert len(every) == 3 * len(cells("local")) > 100


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (Cell("black_hole", "members", "attach"), ""),
        (Cell("partition_brokers", "brokers", "attach"), "needs broker-packets, which attach has not"),
        (Cell("drop_packets", "members", "attach"), ""),
        (Cell("kill", "brokers", "attach"), "needs broker-signal, which attach has not"),
        (Cell("reassign_coordinator", "itself", "attach"), "needs replicas, which attach has not"),
        (Cell("kill", "members", "attach"), ""),
        (Cell("drop_packets", "brokers", "local"), ""),
    ],
    ids=str,
)
def test_the_reason_is_what_the_back_end_lacks(cell: Cell, reason: str) -> None:
    assert cell.not_offered() == reason


def look(what: str, seen: bool, seconds: float, test: str = "test_it_dies") -> dict[str, object]:
    return {**vars(KILL), "look": what, "seen": seen, "seconds": seconds, "told": "pid 7 | gone", "test": test}


def test_a_row_tells_how_often_and_how_soon_and_what_was_seen_first() -> None:
    looks = [look("proven", True, 0.5), look("proven", True, 0.3), look("proven", True, 0.1, "test_more")]
    looks += [look("healed", True, 2.0), look("healed", False, 9.0)]
    (row,) = [line for line in markdown({KILL: looks}).splitlines() if line.startswith("| `kill` | members | local")]
    assert row == "| `kill` | members | local | 3 | pid 7 / gone | 0.30 | 1 | 2.00 | 1 | it dies (+1) |"


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.slow), "2"])
def test_only_what_passed_is_kept_and_the_last_session_counts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    pytester.makeconftest(
        "from fault_table import FaultTable\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.register(FaultTable())\n"
    )
    pytester.makepyfile(
        f"""
        import pytest
        @pytest.mark.parametrize("passes", [True, True, False])
        def test_one(request, passes):
            look = {look("proven", True, 0.5)!r} | {{"told": str(passes)}}
            request.node.user_properties.append(("look", look))
            assert passes
        """
    )
    folder: Path = pytester.path / FOLDER
    folder.mkdir(parents=True)
    (folder / "20000101T000000-1.jsonl").write_text(json.dumps(look("proven", True, 9.0)) + "\n")
    pytester.runpytest_subprocess("-n", workers).assert_outcomes(passed=2, failed=1)
    assert [one["told"] for one in kept(folder)[KILL]] == ["True", "True"]
    assert len(list(folder.iterdir())) == 2
