"""A test of real parts that fails while the host itself is not steady tells nothing of the code: it is tried again.

Not more than REPEATS times, and what it failed with is shown. The host is watched as in every run
(``evidence.host_monitor``). On a steady host nothing is tried twice.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from fencepost.clock import now_ns
from fencepost.evidence import host_monitor
from fencepost.processes.owner import ProcessOwner

REAL = ("chaos", "cluster", "docker", "spark", "browser", "postgresql")
REPEATS = 2


class Steadiness:
    """A pytest plugin, which watches the host from the first test of real parts on."""

    def __init__(self) -> None:
        self._stopped = ExitStack()
        self._file: Path | None = None
        self._begun_ns = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if is_real(item):
                item.add_marker(pytest.mark.flaky(reruns=REPEATS, condition=self.disturbed))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self._file is None and is_real(item):
            owner = self._stopped.enter_context(ProcessOwner.open())
            self._file = owner.directory / host_monitor.FILE
            self._stopped.callback(host_monitor.start(owner, owner.directory).stop)
        self._begun_ns = now_ns()

    def pytest_unconfigure(self) -> None:
        self._stopped.close()

    def disturbed(self) -> bool:
        """Whether the host stood still, or was too busy, since the test began."""
        text = self._file.read_text() if self._file and self._file.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        return any(json.loads(line)["to_ns"] > self._begun_ns for line in whole.splitlines())


def is_real(item: pytest.Item) -> bool:
    """Whether a test needs processes, clusters, or browsers of its own."""
    return any(item.get_closest_marker(name) for name in REAL)
