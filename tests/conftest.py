"""What all tests share: a skip of a test of our own parts is a failure on CI, where nothing may be missing."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from fault_table import FaultTable
from steadiness import REAL, Steadiness
from xdist.scheduler import LoadFileScheduling

from fencepost.turns import PLACES

pytest_plugins = ["pytester", "postgres"]
# What starts and stops Spark itself: a process has one Spark at a time, and the others share theirs.
FIRST = ("test_spark_session.py", "test_spark_clusters.py")
# Their tests share nothing with each other, and wait for most of their time: any worker takes any of them, beside
# files that keep it busy.
APART = ("test_planted_bugs.py", "test_no_false_alarm.py")


class Scheduling(LoadFileScheduling):
    """A file is one worker's, as its tests share clusters; but for ``APART``."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return nodeid if file.endswith(APART) else file


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Steadiness())
    config.pluginmanager.register(FaultTable())
    if workers := config.getoption("numprocesses", None):  # of pytest-xdist, which get this environment
        os.environ.setdefault(PLACES, str(workers))  # they share the machine on purpose


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    return Scheduling(config, log)


@pytest.hookimpl(trylast=True)  # what is deselected has no place
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first ones first, and what is apart evenly between the other files."""
    items.sort(key=lambda item: item.path.name not in FIRST)
    apart = [item for item in items if item.path.name in APART]
    files = list(dict.fromkeys(item.path for item in items if item.path.name not in APART))
    place = {item: number * len(files) / len(apart) for number, item in enumerate(apart, 1)}
    place |= {item: files.index(item.path) for item in items if item not in place}
    items.sort(key=place.__getitem__)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    owned = [name for name in REAL if item.get_closest_marker(name)]
    if owned and report.skipped and not hasattr(report, "wasxfail"):
        _fail_on_ci(report, f"every {owned[0]} test")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _fail_on_ci(report, "every module")
    return report


def _fail_on_ci(report: pytest.TestReport | pytest.CollectReport, what: str) -> None:
    if os.environ.get("CI") == "true":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped on CI, where {what} must run: {reason}"
