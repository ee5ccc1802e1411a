"""The order in which tests try a mutant: first those that killed one beside it, then the cheapest.

A pytest plugin for mutmut, which hands all the tests that reach a mutant to pytest in no order, and stops at the first
that fails.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

STATS = Path("mutmut-stats.json")
LIMIT_S = 10  # of CPU, so that a busy machine kills nobody; a test takes 3 s at most
KILLERS = Path("killers")  # of each function: a test per line, each time that it killed a mutant

# The same examples each time: else whether a mutant dies would be a matter of luck.
settings.register_profile("mutation", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mutation")


def _killers(function: str) -> Path:
    return KILLERS / function.replace("/", "_")


def _function() -> str:
    """Of which the mutant is that is tried now; empty outside of that."""
    name, numbered, _ = os.environ.get("MUTANT_UNDER_TEST", "").partition("__mutmut_")
    return name if numbered else ""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    function = _function()
    if not function:
        return
    seconds: dict[str, float] = json.loads(STATS.read_text(encoding="utf-8"))["duration_by_test"]
    here, beside = _kills(_killers(function)), Counter[str]()
    for path in KILLERS.glob(f"{function.rpartition('.')[0]}.*"):
        beside += _kills(path)

    def order(item: pytest.Item) -> tuple[float, float, float]:
        took = seconds.get(item.nodeid, 0.0) + 0.01
        return -here[item.nodeid] / took, -beside[item.nodeid] / took, took

    items.sort(key=order)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """A mutant that turns for ever is noticed."""
    signal.signal(signal.SIGVTALRM, _out_of_time)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S if _function() else 0)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _out_of_time(signum: int, frame: FrameType | None) -> None:
    pytest.fail(f"more than {LIMIT_S} s of CPU")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed and (function := _function()):
        KILLERS.mkdir(exist_ok=True)
        with _killers(function).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")


def _kills(path: Path) -> Counter[str]:
    return Counter(path.read_text(encoding="utf-8").splitlines() if path.exists() else ())
