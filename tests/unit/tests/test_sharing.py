"""Shards divide the tests among them, files as wholes, and everything follows from the commit."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter

import pytest
import sharing
from sharing import ALONE, SEEDS, SHARDS, SPREAD, of_commit, scope_of, seconds, shard, shard_of

FILES = {f"tests/cluster/test_{name}.py": count for name, count in (("large", 40), ("b", 7), ("c", 7), ("d", 1))}
TESTS = [f"{file}::test[{number}]" for file, count in FILES.items() for number in range(count)]
TESTS += [f"tests/cluster/{ALONE[0]}::test[{number}]" for number in range(345)]


@pytest.mark.parametrize("of", [1, 3, 8])
def test_each_test_is_in_one_shard_and_shards_are_about_as_large_as_each_other(of: int) -> None:
    shards = [shard_of(TESTS, number, of) for number in range(1, of + 1)]
    assert Counter(test for shard in shards for test in shard) == Counter(TESTS)
    loads = [sum(seconds(scope_of(test)) for test in shard) for shard in shards]
    assert max(loads) - min(loads) <= max(seconds(scope_of(test)) for test in TESTS)


def test_a_file_is_in_one_shard_but_for_tests_that_share_nothing() -> None:
    shards = [shard_of(TESTS, number, 8) for number in range(1, 9)]
    there = {file: sum(any(test.startswith(file) for test in shard) for shard in shards) for file in FILES}
    assert set(there.values()) == {1}
    assert all(any(ALONE[0] in test for test in shard) for shard in shards)


def test_shards_take_tests_that_compute_for_long_in_turn() -> None:
    long = [f"tests/history/{SPREAD[0]}::test[{number}]" for number in range(19)]
    found = [len(shard_of([*TESTS, *long], number, 8).intersection(long)) for number in range(1, 9)]
    assert sorted(found) == [2] * 5 + [3] * 3


def test_the_shard_does_not_depend_on_the_order_of_the_tests() -> None:
    assert shard_of(TESTS, 2, 8) == shard_of(reversed(TESTS), 2, 8)


def test_files_whose_tests_share_nothing_exist(request: pytest.FixtureRequest) -> None:
    there = {path.name for path in (request.config.rootpath / "tests").rglob("test_*.py")}
    assert {*ALONE, *SPREAD, *sharing.FIRST} <= there
    assert scope_of("tests/cluster/test_faults.py::test_it[a::b]") == "tests/cluster/test_faults.py"


def test_commits_are_spread_over_all_shards_and_seeds_are_numbers_that_runs_take() -> None:
    printed = Counter()
    for number in range(50 * SHARDS):
        shard, seed = of_commit(hashlib.sha1(str(number).encode()).hexdigest()).split()
        printed[shard] += 1
        assert 0 <= int(seed.removeprefix("SEED=")) < SEEDS
    assert set(printed) == {f"SHARD={number}/{SHARDS}" for number in range(1, SHARDS + 1)}


def test_the_commit_alone_decides() -> None:
    commit = "324ae7c0de" * 4
    command = [sys.executable, sharing.__file__, commit]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == f"{of_commit(commit)}\n"


def test_on_clusters_only_the_core_belongs_to_make_test(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n core: c\n slow: s")
    for folder in ("cluster", "unit"):
        pytester.path.joinpath(folder, "faults").mkdir(parents=True)
        test = f"import pytest\n@pytest.mark.core\ndef test_core_{folder}(): pass\ndef test_other_{folder}(): pass\n"
        pytester.path.joinpath(folder, "faults", f"test_{folder}.py").write_text(test)
    performed = {}
    for marked in ("slow", "not slow"):
        run = pytester.inline_run("-m", marked, "-p", "no:cacheprovider", plugins=[sharing.Core()])
        performed[marked] = {report.nodeid.partition("::")[2] for report in run.getreports("pytest_runtest_logreport")}
    assert performed["slow"] == {"test_other_cluster"}
    assert performed["not slow"] == {"test_core_cluster", "test_core_unit", "test_other_unit"}


def test_only_the_shard_is_performed(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "from sharing import Sharing, add_option as pytest_addoption\n"
        "def pytest_configure(config): config.pluginmanager.register(Sharing())\n"
    )
    tests = "import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_it(n): pass\n"
    pytester.makepyfile(test_one=tests, test_two=tests, test_three=tests)
    ran = []
    for number in (1, 2, 3):
        result = pytester.runpytest_inprocess("-v", f"--shard={number}/3", "-p", "no:cacheprovider")
        result.assert_outcomes(passed=3, deselected=6)
        ran += [line.split(" ")[0] for line in result.outlines if "PASSED" in line]
    assert len(set(ran)) == 9


@pytest.mark.parametrize("text", ["3", "0/8", "9/8", "a/b", "1/2/3"])
def test_a_shard_that_there_is_not_is_refused(text: str) -> None:
    words = re.escape(f"--shard: expected K/N with 1 <= K <= N, as 3/8, found {text!r}")
    with pytest.raises(pytest.UsageError, match=words):
        shard(text)
