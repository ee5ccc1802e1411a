"""In which order tests run, and with ``-n`` of pytest-xdist who gets which of them."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

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


class Sharing:
    """A pytest plugin: the first ones first, and what is apart evenly between the other files."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Scheduling:
        return Scheduling(config, log)

    @pytest.hookimpl(trylast=True)  # what is deselected has no place
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: item.path.name not in FIRST)
        apart = [item for item in items if item.path.name in APART]
        others = dict.fromkeys(item.path for item in items if item.path.name not in APART)
        numbers = {path: number for number, path in enumerate(others)}
        place = {item: number * len(others) / len(apart) for number, item in enumerate(apart, 1)}
        place |= {item: numbers[item.path] for item in items if item not in place}
        items.sort(key=place.__getitem__)
