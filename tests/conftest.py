"""What all tests share: a skip of a test of our own parts is a failure on CI, where nothing may be missing."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from fault_table import FaultTable
from steadiness import REAL, Steadiness

from fencepost.turns import PLACES

pytest_plugins = ["pytester", "postgres"]
# What starts and stops Spark itself: a process has one Spark at a time, and the others share theirs. Then what takes
# longest, so that no worker is left alone with it in the end.
FIRST = ("test_spark_session.py", "test_spark_clusters.py", "test_planted_bugs.py")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Steadiness())
    config.pluginmanager.register(FaultTable())
    if workers := config.getoption("numprocesses", None):  # of pytest-xdist, which get this environment
        os.environ.setdefault(PLACES, str(workers))  # they share the machine on purpose


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: FIRST.index(item.path.name) if item.path.name in FIRST else len(FIRST))


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
