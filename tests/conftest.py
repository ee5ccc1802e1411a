"""What all tests share: a skip of a test of our own parts is a failure on CI, where nothing may be missing."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

pytest_plugins = ["pytester"]
MUST_RUN = ("chaos", "cluster", "spark", "browser")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    owned = [name for name in MUST_RUN if item.get_closest_marker(name)]
    if os.environ.get("CI") == "true" and owned and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped on CI, where every {owned[0]} test must run: {report.longrepr[2]}"
    return report
