"""The pytest plugin: what is left out, which seed a test gets, and what a failing test says."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import stage

from fencepost import judging
from fencepost.clusters import backends, selection
from fencepost.model import Validity
from fencepost.processes import concurrency

SCENARIO = """
import pytest
from fencepost import Group, Scenario, Topic
from fencepost.workloads import PollLoop

SCENARIO = Scenario("orders", [Topic("orders")], Group(), PollLoop())
"""
TEST = (
    SCENARIO
    + """
@pytest.mark.chaos
def test_orders(chaos):
    chaos.run(SCENARIO).must_keep_its_promises()
"""
)

# The plugin of this very process is used again, which pytest warns about.
WARNINGS_ARE_ERRORS = ("-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning")


@pytest.fixture(autouse=True)
def other_plugins_stay_away(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be loaded anew by every inner session."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p fencepost.plugin")


def test_chaos_tests_run_only_when_asked_for(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.set_up(monkeypatch, Validity.VALID, Validity.VALID)
    pytester.makepyfile(TEST + "\ndef test_plain(): pass\n")
    pytester.runpytest_inprocess("--strict-markers").assert_outcomes(passed=1, deselected=1)
    pytester.runpytest_inprocess("--chaos").assert_outcomes(passed=2)
    pytester.runpytest_inprocess("-m", "chaos").assert_outcomes(passed=1, deselected=1)
    pytester.runpytest_inprocess("-m", "not chaos").assert_outcomes(passed=1, deselected=1)


def test_the_seed_is_the_same_on_every_run_and_another_for_every_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, *[Validity.VALID] * 4)
    pytester.makepyfile(TEST + TEST[len(SCENARIO) :].replace("test_orders", "test_others"))
    for _ in range(2):
        pytester.runpytest_inprocess("--chaos").assert_outcomes(passed=2)
    first, second, *again = acted.seeds
    assert again == [first, second]
    assert first != second


def test_a_chosen_seed_goes_to_every_run_and_a_random_one_is_printed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, Validity.VALID, Validity.VALID, Validity.VALID)
    pytester.makepyfile(TEST)
    pytester.runpytest_inprocess("--chaos", "--chaos-seed=77").assert_outcomes(passed=1)
    result = pytester.runpytest_inprocess("--chaos", "--chaos-seed=random")
    result.stdout.fnmatch_lines([f"chaos: --chaos-seed {acted.seeds[1]}"])
    assert acted.seeds[0] == 77
    pytester.makepyfile(TEST.replace("run(SCENARIO)", "run(SCENARIO, seed=5)"))
    pytester.runpytest_inprocess("--chaos", "--chaos-seed=77").assert_outcomes(passed=1)
    assert acted.seeds[2] == 5


def test_a_cluster_of_others_is_attached_to_with_what_the_options_say(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, Validity.VALID, Validity.VALID)
    pytester.makepyfile(TEST)
    pytester.makefile(".properties", client="security.protocol=PLAINTEXT")
    options = ("--chaos-cluster=attach:kafka.example:9092", "--chaos-cluster-config=client.properties", "--chaos-yes")
    pytester.runpytest_inprocess("--chaos", *options).assert_outcomes(passed=1)
    pytester.runpytest_inprocess("--chaos").assert_outcomes(passed=1)
    attached, own = acted.backends
    assert (str(attached), str(own)) == ("attach:kafka.example:9092", "local")
    assert getattr(attached, "permitted", False)
    assert getattr(attached, "access", {}) == {"security.protocol": "PLAINTEXT"}


def test_run_folders_are_made_where_the_option_says(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.set_up(monkeypatch, Validity.VALID)
    pytester.makepyfile(TEST)
    pytester.runpytest_inprocess("--chaos", "--chaos-runs=elsewhere").assert_outcomes(passed=1)
    assert len(list(pytester.path.glob("elsewhere/orders-*"))) == 1


def test_a_broken_promise_fails_with_one_section_that_says_how_to_repeat_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, Validity.INVALID)
    path = pytester.makepyfile(TEST)
    result = pytester.runpytest_inprocess("--chaos")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*BrokenPromises: unseen: 1,200 × against Delivery*",
            "*- chaos -*",
            f"seed:    {acted.seeds[0]}",
            f"run:     */runs/orders-{acted.seeds[0]}-*",
            'unseen: 1,200 × against Delivery("at-least-once")',
            stage.SENTENCE,
            "for example orders-3, offset 42, by member-1.1",
            f"repeat:  pytest --chaos {path.name}::test_orders --chaos-seed={acted.seeds[0]}",
        ]
    )
    assert len(re.findall("- chaos -", result.stdout.str())) == 1


def test_the_command_that_repeats_a_run_has_its_cluster(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, Validity.INVALID)
    path = pytester.makepyfile(TEST)
    result = pytester.runpytest_inprocess("--chaos", "--chaos-cluster=local")
    seeded = f"--chaos-seed={acted.seeds[0]}"
    result.stdout.fnmatch_lines([f"repeat:  pytest --chaos {path.name}::test_orders {seeded} --chaos-cluster=local"])


def test_an_unknown_verdict_fails_with_an_exception_of_its_own(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.set_up(monkeypatch, Validity.UNKNOWN)
    pytester.makepyfile(TEST)
    result = pytester.runpytest_inprocess("--chaos")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*UnknownVerdict: demo: unknown", "*delivery: too few facts"])


def test_what_a_passing_run_did_not_judge_is_listed_at_the_end(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, Validity.VALID)
    judge = acted.judge
    unjudged = {"wrong-start": "there is no request log", "stuck-member": "there is no request log"}
    monkeypatch.setattr(judging, "judge", lambda *a, **k: replace(judge(*a, **k), unjudged=unjudged))
    pytester.makepyfile(TEST)
    result = pytester.runpytest_inprocess("--chaos")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*= chaos: what was not judged =*", "stuck-member, wrong-start, because there is no request log"]
    )


def test_a_run_that_nobody_judged_fails_at_teardown(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.set_up(monkeypatch, Validity.INVALID)
    pytester.makepyfile(TEST.replace(".must_keep_its_promises()", ""))
    result = pytester.runpytest_inprocess("--chaos")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["the test did not judge */runs/orders-*: call its must_keep_its_promises()*", "*the run was not judged*"]
    )


def test_reading_the_verdict_is_judging(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.set_up(monkeypatch, Validity.INVALID)
    pytester.makepyfile(
        TEST.replace(
            "chaos.run(SCENARIO).must_keep_its_promises()",
            """
    run = chaos.run(SCENARIO)
    assert run.verdict is run.verdict
    assert run.verdict.validity == "invalid"
    assert run.folder.is_dir()
""",
        )
    )
    pytester.runpytest_inprocess("--chaos").assert_outcomes(passed=1)


def test_a_test_that_fails_by_itself_is_not_blamed_for_not_judging(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.set_up(monkeypatch)
    pytester.makepyfile(TEST.replace(".must_keep_its_promises()", "; raise ValueError('mine')"))
    result = pytester.runpytest_inprocess("--chaos")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ValueError: mine", "*the run was not judged*"])


def test_last_failed_repeats_the_seed_that_failed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    acted = stage.set_up(monkeypatch, Validity.INVALID, Validity.VALID, Validity.VALID)
    pytester.makepyfile(TEST)
    pytester.runpytest_inprocess("--chaos", "--chaos-seed=123456").assert_outcomes(failed=1)
    pytester.runpytest_inprocess("--chaos", "--lf").assert_outcomes(passed=1)
    assert acted.seeds == [123456, 123456]
    pytester.runpytest_inprocess("--chaos", "--lf").assert_outcomes(passed=1)
    assert acted.seeds[2] != 123456, "it passed, so its seed is not kept"


def test_spark_is_started_once_for_all_tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    acted = stage.set_up(monkeypatch, Validity.VALID, Validity.VALID)
    pytester.makepyfile(TEST + TEST[len(SCENARIO) :].replace("test_orders", "test_others"))
    pytester.runpytest_inprocess("--chaos").assert_outcomes(passed=2)
    assert acted.sparks == [("local[*]", None)]


def test_spark_runs_where_it_is_told(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    acted = stage.set_up(monkeypatch, Validity.VALID)
    pytester.makepyfile(TEST)
    options = ("--chaos-spark-master=yarn", "--chaos-spark-remote=sc://host")
    pytester.runpytest_inprocess("--chaos", *options).assert_outcomes(passed=1)
    assert acted.sparks == [("yarn", "sc://host")]


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--chaos-cluster=mars", "unknown back-end 'mars'; use auto|local|docker|attach:HOST:PORT|"),
        ("--chaos-seed=lucky", "--chaos-seed must be a number or 'random', not 'lucky'"),
    ],
)
def test_a_bad_option_is_refused_before_anything_runs(pytester: pytest.Pytester, option: str, sentence: str) -> None:
    result = pytester.runpytest_inprocess(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{sentence}*"])


def test_methods_of_a_class_and_parameters_each_have_a_seed_of_their_own(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, *[Validity.VALID] * 4)
    pytester.makepyfile(
        SCENARIO
        + """
@pytest.mark.chaos
class TestOrders:
    def test_plain(self, chaos):
        chaos.run(SCENARIO).must_keep_its_promises()

    @pytest.mark.parametrize("protocol", ["eager", "cooperative", "consumer"])
    def test_each(self, chaos, protocol):
        chaos.run(SCENARIO).must_keep_its_promises()
"""
    )
    pytester.runpytest_inprocess("--chaos", *WARNINGS_ARE_ERRORS).assert_outcomes(passed=4)
    assert len(set(acted.seeds)) == 4


def test_a_unittest_class_gets_its_factory_from_an_autouse_fixture(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.set_up(monkeypatch, Validity.VALID, Validity.INVALID)
    pytester.makepyfile(
        SCENARIO
        + """
import unittest

@pytest.mark.chaos
class Orders(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _factory(self, chaos):
        self.chaos = chaos

    def test_first(self):
        self.chaos.run(SCENARIO).must_keep_its_promises()

    def test_second(self):
        self.chaos.run(SCENARIO).must_keep_its_promises()
"""
    )
    result = pytester.runpytest_inprocess("--chaos", *WARNINGS_ARE_ERRORS)
    result.assert_outcomes(passed=1, failed=1)
    assert len(re.findall("- chaos -", result.stdout.str())) == 1


def test_the_factory_belongs_to_one_test_and_a_wider_fixture_is_told_so(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.set_up(monkeypatch)
    wider = "\n@pytest.fixture(scope='class')\ndef mine(chaos): pass\n"
    pytester.makepyfile(TEST.replace("(chaos)", "(mine)") + wider)
    result = pytester.runpytest_inprocess("--chaos")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ScopeMismatch: You tried to access the function scoped fixture chaos*"])


def test_without_pytests_cache_a_failing_run_is_told_all_the_same(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, Validity.INVALID, Validity.VALID)
    pytester.makepyfile(TEST)
    result = pytester.runpytest_inprocess("--chaos", "--chaos-seed=9", "-p", "no:cacheprovider", *WARNINGS_ARE_ERRORS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["seed:    9"])
    pytester.runpytest_inprocess("--chaos", "-p", "no:cacheprovider").assert_outcomes(passed=1)
    assert acted.seeds[1] != 9


RETRIES = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for _ in range(2):
        runtestprotocol(item, nextitem=nextitem)
    return True
"""


def test_a_retry_that_succeeds_is_no_failing_test_any_more(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, Validity.UNKNOWN, Validity.VALID, Validity.VALID)
    pytester.makepyfile(TEST)
    pytester.makeconftest(RETRIES)
    pytester.runpytest_inprocess("--chaos", "--chaos-seed=11").assert_outcomes(failed=1, passed=1)
    pytester.makeconftest("")
    pytester.runpytest_inprocess("--chaos", "--lf").assert_outcomes(passed=1)
    assert acted.seeds[:2] == [11, 11]
    assert acted.seeds[2] != 11, "it passed in the end, so its seed is not kept"


def test_a_retry_that_judges_nothing_fails_at_its_teardown(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.set_up(monkeypatch, Validity.UNKNOWN)
    asks_once = """
tries = []

@pytest.mark.chaos
def test_orders(chaos):
    run = chaos.run(SCENARIO)
    tries.append(run)
    if len(tries) == 1:
        run.must_keep_its_promises()
"""
    pytester.makepyfile(SCENARIO + asks_once)
    pytester.makeconftest(RETRIES)
    result = pytester.runpytest_inprocess("--chaos")
    result.assert_outcomes(failed=1, passed=1, errors=1)
    result.stdout.fnmatch_lines(["the test did not judge */runs/orders-*"])


def test_a_cluster_of_its_own_takes_a_place_of_the_machine_and_runs_share_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stage.set_up(monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # others may be running on this machine
    monkeypatch.delenv(concurrency.HELD, raising=False)
    monkeypatch.setattr(concurrency, "max_concurrent_runs", lambda: 1)
    staged = replace(backends.local(), provide=lambda *_: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(selection, "auto", lambda: staged)
    pytester.makepyfile(
        """
import os
from fencepost.processes.concurrency import HELD, run_permit

def test_cluster(chaos_cluster):
    assert HELD in os.environ
    with run_permit("a run beside it", within_s=0):
        pass

def test_none():
    assert HELD not in os.environ
"""
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=2)


STAGED = """
from fencepost.model import Validity
from stage import set_up

set_up(pytest.MonkeyPatch(), *[Validity.INVALID] * {count})
"""
IN_A_GROUP = TEST[len(SCENARIO) :].replace("@", "@pytest.mark.xdist_group('{number}')\n@", 1)


def test_workers_of_xdist_have_runs_of_their_own_a_seed_in_common_and_keep_those_that_failed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 8
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))  # workers are other processes
    tests = [IN_A_GROUP.format(number=n).replace("test_orders", f"test_{n}") for n in range(count)]
    path = pytester.makepyfile("".join([SCENARIO, STAGED.format(count=count), *tests]))
    workers = ("-p", "xdist", "-n", "2", "--dist", "loadgroup")  # which may put the group behind the node id
    result = pytester.runpytest_subprocess("--chaos", "--chaos-seed=random", *workers)
    result.assert_outcomes(failed=count)
    (seed,) = set(seeds := re.findall(r"^seed: +(\d+)$", result.stdout.str(), re.MULTILINE))
    assert len(seeds) == len(list(pytester.path.glob(f"runs/orders-{seed}-*"))) == count
    assert result.stdout.str().count(f"chaos: --chaos-seed {seed}\n") == 1
    result.stdout.fnmatch_lines([f"repeat:  pytest --chaos {path.name}::test_0 --chaos-seed={seed}"])

    again = pytester.runpytest_subprocess("--chaos", *[f"{path.name}::test_{n}" for n in range(count)], "--lf")
    assert re.findall(r"^seed: +(\d+)$", again.stdout.str(), re.MULTILINE) == [seed] * count
