"""The pytest plugin: the fixtures ``chaos``, ``chaos_cluster`` and ``chaos_spark``, with their options and hooks.

Chaos tests have the marker ``chaos`` and run only with ``-m chaos`` or ``--chaos``. Loading the plugin is cheap: the
rest of Fencepost is imported when the first chaos test runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fencepost import seeds
from fencepost.clusters.names import AUTO, METAVAR, is_name
from fencepost.console import library_logs

if TYPE_CHECKING:
    from fencepost.battery.card import Card
    from fencepost.checkers.spark.session import Spark
    from fencepost.clusters.backends import Backend
    from fencepost.interfaces import Cluster
    from fencepost.model import Verdict
    from fencepost.scenario.scenario import Scenario

_RUNS = pytest.StashKey[list["ChaosRun"]]()
_FAILED = pytest.StashKey[bool]()
NOTHING = object()
NOT_JUDGED = "chaos: not judged"
CLUSTER_OPTIONS = ("--chaos-cluster", "--chaos-cluster-config", "--chaos-yes")


class ChaosRun:
    """One run of a scenario, made by ``chaos.run``.

    Attributes:
        folder: its run folder.
        seed: decides its random choices.
    """

    def __init__(self, folder: Path, seed: int, spark: Spark) -> None:
        self.folder = folder
        self.seed = seed
        self.judged: Verdict | None = None
        self._spark = spark

    @property
    def verdict(self) -> Verdict:
        """The verdict of this run; the first access judges the run."""
        if self.judged is None:
            with library_logs.quiet():
                from fencepost.judging import judge

                self.judged = judge(self.folder, self._spark)
        return self.judged

    def must_keep_its_promises(self) -> None:
        """Pass only when the verdict is ``valid``.

        Raises:
            BrokenPromises: the verdict is ``invalid``; the message has the worst finding.
            UnknownVerdict: the verdict is ``unknown``; the message has the reason.
        """
        from fencepost.errors import BrokenPromises, UnknownVerdict
        from fencepost.model import Validity
        from fencepost.reports.summary import worst

        if self.verdict.validity is not Validity.VALID:
            broken = self.verdict.validity is Validity.INVALID
            raise (BrokenPromises if broken else UnknownVerdict)("\n".join(worst(self.verdict)))


class Chaos:
    """The factory behind the fixture ``chaos``: performs each scenario on a fresh cluster, or on one that a test hands
    in."""

    def __init__(self, item: pytest.Item, spark: Spark, handed_in: object = NOTHING) -> None:
        """``handed_in``: the value of the user's fixture ``chaos_cluster``, if there is one and it counts."""
        self._item, self._spark, self._handed_in = item, spark, handed_in

    def run(self, scenario: Scenario, seed: int | None = None) -> ChaosRun:
        """Perform ``scenario`` and return the run, not yet judged.

        Args:
            scenario: the scenario.
            seed: decides every random choice; by default ``--chaos-seed``, or a hash of the test's node id.
        """
        config = self._item.config
        chosen = seeds.seed_of(self._item) if seed is None else seed
        runs = config.invocation_params.dir / config.getoption(
            "--chaos-runs"
        )  # a test may change its working directory
        with library_logs.quiet():
            from fencepost import runner

            backend = _backend(config, self._handed_in)
            plan = scenario.drawn(chosen)
            folder = runner.run(scenario, plan=plan, runs=runs, observe=None, backend=backend)
        run = ChaosRun(folder, chosen, self._spark)
        self._item.stash[_RUNS].append(run)
        return run

    def try_program(
        self, command: Sequence[str], *, only: Sequence[str] = (), quick: bool = False, **options: Any
    ) -> Card:
        """Put a program into situations, as ``fencepost try`` does; returns its card.

        Args:
            command: starts one member of the group.
            only: names of situations; empty: all, or with ``quick`` those that find most.
            options: see ``battery.request.BatteryRequest``.

        Raises:
            FencepostError: the program cannot be started, or does not consume.
        """
        config = self._item.config
        with library_logs.quiet():
            from fencepost.battery import conduct, situations
            from fencepost.battery.request import BatteryRequest
            from fencepost.repeat.batch import RunOptions

            folder = conduct.make_folder(config.invocation_params.dir / config.getoption("--chaos-runs"), command)
            where = RunOptions(folder, _backend(config, self._handed_in), config.getoption("--chaos-spark-master"))
            battery = conduct.Battery(
                BatteryRequest(tuple(command), **options),
                situations.chosen(only, quick),
                seeds.seed_of(self._item),
                folder,
                where,
                conduct.Nobody(),
            )
            return battery.run(self._spark)[2]


def _backend(config: pytest.Config, handed_in: object = NOTHING) -> Backend:
    """The back-end that leads to a cluster that is handed in, or else the one that the command line names."""
    from fencepost.clusters.attach.handed_in import name_of
    from fencepost.clusters.selection import backend

    name, access, yes = map(config.getoption, CLUSTER_OPTIONS)
    if handed_in is not NOTHING:
        name = name_of(handed_in)
    return backend(name, access and Path(access), yes, config.rootpath)


def _handed_in(request: pytest.FixtureRequest) -> object:
    """The value of the fixture ``chaos_cluster`` that the user defines.

    ``NOTHING``, without setting the fixture up, if there is none or the command line names a back-end.
    """
    defined = request.session._fixturemanager.getfixturedefs("chaos_cluster", request.node) or ()
    own = not defined or defined[-1].func.__module__ == __name__
    named = request.config.getoption(CLUSTER_OPTIONS[0]) != AUTO
    return NOTHING if own or named else request.getfixturevalue("chaos_cluster")


@pytest.fixture(scope="session")
def chaos_spark(pytestconfig: pytest.Config) -> Iterator[Spark]:
    """The Spark session that judges, started in the background, once for the whole test session."""
    from fencepost.checkers.spark.session import Spark

    options = pytestconfig.getoption
    with Spark.start(options("--chaos-spark-master"), remote=options("--chaos-spark-remote")) as spark:
        yield spark


@pytest.fixture
def chaos_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A fresh cluster with three brokers, and proxies for eight members, for tests that need no scenario.

    A fixture of this name in a ``conftest.py`` hands in a cluster that exists: then ``chaos`` performs its runs there.
    It may return everything that ``handed_in.name_of`` accepts, such as a started ``KafkaContainer``.
    """
    from fencepost.clusters import selection
    from fencepost.interfaces import ClusterSpec
    from fencepost.processes.concurrency import run_permit
    from fencepost.processes.owner import ProcessOwner

    own = selection.own(_backend(request.config))
    with run_permit(request.node.nodeid), ProcessOwner.open() as owner:
        with library_logs.quiet():
            cluster = own.provide(ClusterSpec(), owner, lambda note: None)
        yield cluster
        with library_logs.quiet():
            cluster.stop()


@pytest.fixture
def chaos(request: pytest.FixtureRequest, chaos_spark: Spark) -> Iterator[Chaos]:
    """A factory of runs: ``chaos.run(SCENARIO).must_keep_its_promises()``. A test that leaves a run unjudged fails."""
    runs: list[ChaosRun] = []
    request.node.stash[_RUNS] = runs
    request.node.stash[_FAILED] = False  # forget an earlier attempt of the same test
    yield Chaos(request.node, chaos_spark, _handed_in(request))
    forgotten = [str(run.folder) for run in runs if run.judged is None]
    if forgotten and not request.node.stash.get(_FAILED, False):
        pytest.fail(
            f"the test did not judge {', '.join(forgotten)}: call its must_keep_its_promises(), or read its verdict",
            pytrace=False,
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which all begin with ``--chaos``."""
    group = parser.getgroup("chaos", "chaos tests of Kafka consumer groups (fencepost)")
    group.addoption("--chaos", action="store_true", help="also run the tests marked chaos")
    group.addoption(
        "--chaos-cluster",
        default=AUTO,
        metavar=METAVAR,
        help="a new cluster for each run, or one that exists (default: the user's fixture chaos_cluster, or auto)",
    )
    group.addoption("--chaos-cluster-config", metavar="FILE", help="SASL and TLS of attach, as librdkafka's name=value")
    group.addoption("--chaos-yes", action="store_true", help="allow runs on a cluster that is not on this machine")
    group.addoption(
        "--chaos-seed", metavar="N|random", help="the seed of every run (default: a hash of the test's node id)"
    )
    group.addoption("--chaos-runs", default="runs", metavar="DIR", help="folder for run folders (default: runs)")
    group.addoption(
        "--chaos-spark-master", default="local[*]", metavar="URL", help="where Spark runs: spark://..., yarn"
    )
    group.addoption("--chaos-spark-remote", metavar="URL", help="a Spark Connect server: sc://...")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and refuse bad options before anything runs."""
    config.addinivalue_line("markers", "chaos: a chaos test; runs only with -m chaos or --chaos")
    cluster = config.getoption("--chaos-cluster")
    if not is_name(cluster):
        raise pytest.UsageError(f"--chaos-cluster: unknown back-end {cluster!r}; use {METAVAR}")
    seeds.choose(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the drawn seed to the workers of pytest-xdist, which read the command line again."""
    seeds.share(node)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Remember the node id, from which the seed is made."""
    seeds.note(item)


def pytest_report_header(config: pytest.Config) -> str | None:
    """The seed, when one was chosen for the whole session."""
    seed = config.getoption("--chaos-seed")
    return None if seed is None else f"chaos: --chaos-seed {seed}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect chaos tests unless the command line selects them."""
    if config.getoption("--chaos") or re.search(r"\bchaos\b", config.option.markexpr or ""):
        return
    left_out = [item for item in items if item.get_closest_marker("chaos")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("chaos")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add one section to the report of a failing chaos test, and remember its seed for ``--lf``."""
    report = yield
    runs = item.stash.get(_RUNS, [])
    if report.failed:
        item.stash[_FAILED] = True
        if runs:
            report.sections.append(("chaos", section(item, runs)))
    if report.when == "call":
        judged = [run.judged for run in runs if run.judged]
        report.user_properties += [(NOT_JUDGED, f"{kind}: {why}") for v in judged for kind, why in v.unjudged.items()]
    if runs and report.when == "teardown":
        seeds.keep(item, runs[-1].seed if item.stash.get(_FAILED, False) else None)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the kinds of findings that passing tests did not judge, because their cluster does not show everything."""
    found: dict[str, set[str]] = {}
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == NOT_JUDGED:
                kind, _, why = str(value).partition(": ")
                found.setdefault(why, set()).add(kind)
    if found:
        terminalreporter.section("chaos: what was not judged")
    for why, kinds in found.items():
        terminalreporter.line(f"{', '.join(sorted(kinds))}, because {why}")


def _where(config: pytest.Config) -> list[str]:
    """The given options that choose the cluster, as command-line words."""
    given = {option: config.getoption(option) for option in CLUSTER_OPTIONS}
    return [o if value is True else f"{o}={value}" for o, value in given.items() if value and value != AUTO]


def section(item: pytest.Item, runs: list[ChaosRun]) -> str:
    """The section of a failing test, about its last run: seed, folder, worst finding, the command that repeats it."""
    from fencepost.reports.summary import worst

    run = runs[-1]
    finding = worst(run.judged) if run.judged else ["the run was not judged"]
    command = shlex.join(
        ["pytest", "--chaos", item.stash[seeds.NODE_ID], f"--chaos-seed={run.seed}", *_where(item.config)]
    )
    report = run.folder / "report.html"
    lines = [f"seed:    {run.seed}", f"run:     {run.folder}", *finding, f"repeat:  {command}"]
    return "\n".join([*lines, f"report:  {report}"] if report.exists() else lines)
