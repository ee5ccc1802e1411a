"""What all tests share: a skip of a test of our own parts is a failure on CI, where nothing may be missing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from fault_table import FaultTable
from hypothesis import settings
from sharing import Core, Sharing, add_option
from steadiness import REAL, Steadiness

from fencepost.processes.concurrency import MAX_RUNS

FEW, MANY = 5, 500  # examples of one test
MANY_S = 900  # the time limit of a test with so many

pytest_plugins = ["pytester", "postgres"]
pytest_addoption = add_option

# `make test` draws the same examples each time, and few; `make nightly` draws many, from its seed.
settings.register_profile("few", max_examples=FEW, deadline=None, derandomize=True)
settings.register_profile("many", max_examples=MANY, deadline=None, database=None)
settings.load_profile("few")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Steadiness())
    config.pluginmanager.register(FaultTable())
    config.pluginmanager.register(Core())
    config.pluginmanager.register(Sharing())
    if workers := config.getoption("numprocesses", None):  # of pytest-xdist, which get this environment
        os.environ.setdefault(MAX_RUNS, str(workers))  # they share the machine on purpose


@pytest.hookimpl(trylast=True)  # after Hypothesis has marked its tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--hypothesis-profile", None) == "many":
        for item in items:
            if item.get_closest_marker("hypothesis") and not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(MANY_S))


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


@pytest.fixture
def shop_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database of the services in ``examples/apps``, and the current folder is theirs.

    It is made before they start: SQLite does not wait for a lock when it switches a file to WAL, so some of several
    processes that do it at the same time fail.
    """
    path = tmp_path / "orders.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    monkeypatch.chdir(Path(__file__).parent / "examples" / "apps")
    monkeypatch.setenv("SHOP_DATABASE", str(path))
    return path


def _fail_on_ci(report: pytest.TestReport | pytest.CollectReport, what: str) -> None:
    if os.environ.get("CI") == "true":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped on CI, where {what} must run: {reason}"
