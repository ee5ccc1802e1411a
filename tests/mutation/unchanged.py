"""How tests go without a mutant: which lines each reaches, what it costs, what is told of the run folders it leaves.

Kept beside those folders until the checkers change, or what tests share; a test runs again when its own file changes.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from mutation import lines

LEFT = "left"  # beside the folder of the mutants: a folder for each session
KEPT = "unchanged.pickle"
SOURCES = ("fencepost/checkers", *(f"mutants/tests/{name}" for name in ("history", "mutation", "unit")))


@dataclass(frozen=True, eq=False)
class Probe:
    """A test, or a look at what one left.

    ``reached``: the functions that it calls, and which lines of each, see ``lines``. ``test``, ``run``, ``told``: of a
    look, the test that left the folder, and what is told of it.
    """

    name: str
    reached: Mapping[str, int]
    cost_s: float
    test: str = ""
    run: Path = Path()
    told: object = None


def probes(folder: Path, session: pytest.Session) -> list[Probe]:
    """Of all tests of the session; those run now of which nothing is kept that holds."""
    shared = (path for source in SOURCES for path in (folder / source).rglob("*.py"))
    at_s = (folder / KEPT).stat().st_mtime if (folder / KEPT).exists() else 0.0
    if at_s < max(path.stat().st_mtime for path in shared if not _is_test(path)):
        at_s = 0.0
    kept: list[Probe] = pickle.loads((folder / KEPT).read_bytes()) if at_s else []
    unchanged = {item.nodeid for item in session.items if item.path.stat().st_mtime < at_s}
    found = [probe for probe in kept if (probe.test or probe.name) in unchanged]
    known = {probe.name for probe in found}
    if todo := [item for item in session.items if item.nodeid not in known]:
        found += _performed(todo, session.config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]
        if not session.testsfailed:
            (folder / KEPT).write_bytes(pickle.dumps(found))
    return found


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_")


def _performed(items: Sequence[pytest.Item], base: Path) -> Iterator[Probe]:
    from mutation import looks  # once pytest itself has imported fencepost, its plugin

    seen = set[Path]()
    for item, after in zip(items, [*items[1:], None], strict=True):
        _, by_test, cost_s = _watched(partial(item.config.hook.pytest_runtest_protocol, item=item, nextitem=after))
        yield Probe(item.nodeid, by_test, cost_s)
        for folder in {path for path in base.iterdir() if not path.is_symlink()} - seen:
            seen.add(folder)
            for run in looks.runs(folder):
                for look in looks.looks_of(item):
                    reported, reached, cost_s = _watched(partial(looks.told, look, run))
                    both = {function: reached[function] for function in reached.keys() & by_test.keys()}
                    yield Probe(look.__name__, both, cost_s, item.nodeid, run, reported)


def _watched(perform: Callable[[], object]) -> tuple[object, Mapping[str, int], float]:
    begun = time.process_time()
    with lines.reached() as reached:
        reported = perform()
    return reported, reached, time.process_time() - begun
