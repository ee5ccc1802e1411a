"""Which tests run, and in which order: one shard of them, and with ``-n`` of pytest-xdist which process runs which.

``make test`` performs all that is not marked ``slow``; of the folder ``cluster`` that is what is marked ``core``.
``make nightly`` performs one shard of the rest. Tests of one file share clusters, so a shard or a process takes a file
as a whole; but for the files of ``ALONE`` and ``SPREAD``. CI performs the shard that follows from its commit::

    python -m sharing COMMIT    # prints SHARD=3/32 SEED=12345
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SHARDS = 32  # so that each takes a quarter of an hour at most on two cores
SEEDS = 2**31
CLUSTER = "cluster"  # the folder of the tests that need minutes of a real cluster
# These start and stop Spark themselves: a process has one Spark at a time, and the others share theirs.
FIRST = ("test_spark_session.py", "test_spark_clusters.py")
# Each of their tests has a cluster of its own, and waits for most of its time: any process takes any of them, at the
# same time as files that keep another one busy.
ALONE = ("test_catalogue.py", "test_killed_runs.py", "test_no_false_alarm.py", "test_planted_bugs.py")
# Tests that compute for long and share nothing: shards take them in turn, and any process takes any of them.
SPREAD = ("test_kernel_equals_oracle.py",)
# How long a test takes about, in seconds: one of ALONE, one on a cluster that its file shares, any other one.
ALONE_S, CLUSTER_S, OTHER_S = 30, 10, 1


def scope_of(nodeid: str) -> str:
    """What is performed by one process: the test's file, or the test alone."""
    file = nodeid.partition("::")[0]
    return nodeid if file.endswith(ALONE) else file


def seconds(scope: str) -> int:
    """How long one test of this scope takes about."""
    if scope.partition("::")[2]:
        return ALONE_S
    return CLUSTER_S if f"/{CLUSTER}/" in scope else OTHER_S


def shard_of(nodeids: Iterable[str], number: int, of: int) -> set[str]:
    """The tests of the shard with this number, from 1.

    The heaviest scope comes first, each to the shard that is lightest by then, so that shards differ by little; a hash
    decides between equals, so that neighbours are spread over all shards.
    """
    scopes: dict[str, set[str]] = defaultdict(set)
    for nodeid in nodeids:
        scopes[scope_of(nodeid)].add(nodeid)
    weights = {scope: seconds(scope) * len(tests) for scope, tests in scopes.items()}
    shards: list[set[str]] = [set() for _ in range(of)]
    loads = [0] * of
    for scope in sorted(scopes, key=lambda scope: (-weights[scope], hashlib.sha256(scope.encode()).digest())):
        lightest = loads.index(min(loads))
        loads[lightest] += weights[scope]
        spread = scope.endswith(SPREAD)
        for turn, test in enumerate(sorted(scopes[scope])):
            shards[(lightest + turn * spread) % of].add(test)
    return shards[number - 1]


def of_commit(commit: str) -> str:
    """The shard and the seed that follow from a commit, as arguments of make."""
    seed, shard = divmod(int(commit, 16), SHARDS)
    return f"SHARD={shard + 1}/{SHARDS} SEED={seed % SEEDS}"


class Core:
    """A pytest plugin: in ``CLUSTER`` what is not marked ``core`` is slow."""

    @pytest.hookimpl(tryfirst=True)  # before pytest looks which are slow
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            folders = item.path.relative_to(item.config.rootpath).parts
            if CLUSTER in folders and not item.get_closest_marker("core"):
                item.add_marker(pytest.mark.slow)


class Scheduling(LoadFileScheduling):
    """A process takes a scope as a whole, but for the files of ``SPREAD``."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.partition("::")[0].endswith(SPREAD) else scope_of(nodeid)


class Sharing:
    """A pytest plugin: the tests of the shard, ``FIRST`` first, and those of ``ALONE`` evenly between other files."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Scheduling:
        return Scheduling(config, log)

    @pytest.hookimpl(trylast=True)  # after `-m` and `-k`: what is deselected has no place
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        number, of = config.getoption("--shard")
        chosen = shard_of((item.nodeid for item in items), number, of)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]
        items.sort(key=lambda item: item.path.name not in FIRST)
        alone = [item for item in items if item.path.name in ALONE]
        others = dict.fromkeys(item.path for item in items if item.path.name not in ALONE)
        numbers = {path: number for number, path in enumerate(others)}
        place = {item: number * len(others) / len(alone) for number, item in enumerate(alone, 1)}
        place |= {item: numbers[item.path] for item in items if item not in place}
        items.sort(key=place.__getitem__)


def shard(text: str) -> tuple[int, int]:
    """``3/8`` as numbers. Raises UsageError, which says what was expected."""
    number, of = map(int, found.groups()) if (found := re.fullmatch(r"(\d+)/(\d+)", text)) else (0, 0)
    if not 1 <= number <= of:
        raise pytest.UsageError(f"--shard: expected K/N with 1 <= K <= N, as 3/8, found {text!r}")
    return number, of


def add_option(parser: pytest.Parser) -> None:
    """Add ``--shard``."""
    parser.addoption("--shard", type=shard, default=(1, 1), metavar="K/N", help="the K-th of N parts of the tests")


if __name__ == "__main__":
    print(of_commit(sys.argv[1]))
