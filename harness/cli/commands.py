"""The command line. Every command is a thin call into the harness; what is heavy is imported when it is needed.

Exit codes: 0 valid, 1 invalid, 2 bad usage, 3 unknown, 4 the harness itself failed, 130 interrupted.
"""

from __future__ import annotations

import secrets
import sys
import traceback
import webbrowser
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.table import Table
from rich.text import Text

from fencepost.cli import listing
from fencepost.cli.options import Access, Backend, Judged, Run, Runs, SparkMaster, SparkRemote, Yes
from fencepost.clusters import selection
from fencepost.clusters.selection import AUTO, backend
from fencepost.console import library_logs
from fencepost.console.terminal import out, show_verdict
from fencepost.errors import FencepostError, RunFolderError, ScenarioError
from fencepost.model import Validity
from fencepost.repeat import batch
from fencepost.repeat.batch import Where
from fencepost.reports.words import visible
from fencepost.scenario import loader
from fencepost.scenario.overrides import override


class Exit(IntEnum):
    """What the exit code of every command means."""

    VALID = 0
    INVALID = 1
    USAGE = 2
    UNKNOWN = 3
    FAILED = 4


OF_VALIDITY = {Validity.VALID: Exit.VALID, Validity.INVALID: Exit.INVALID, Validity.UNKNOWN: Exit.UNKNOWN}

KINDS = ", ".join(listing.Kind)


app = typer.Typer(
    name="fencepost", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)


@app.callback()
def common(debug: Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")] = False) -> None:
    """Chaos tests for Kafka consumer groups: real faults, proven; real histories, judged.

    Exit codes: 0 valid, 1 invalid, 2 bad usage, 3 unknown, 4 the harness itself failed, 130 interrupted.
    """


@app.command()
def doctor() -> None:
    """Say what this machine has and lacks, with remedies.

    Exit code 4: no run is possible here.
    """
    from fencepost.clusters import doctor as surgery

    findings = surgery.examine()
    for finding in findings:
        out.print(finding.line(), markup=False)
    chosen = selection.auto()
    out.print(f"\nA run gets the back-end {chosen}, unless --cluster says otherwise ({chosen.why}).", markup=False)
    if missing := surgery.beyond_reach(surgery.lacks(chosen)):
        out.print(f"It is not possible yet: {', '.join(part.name for part in missing)}.", markup=False)
        raise typer.Exit(Exit.FAILED)


@app.command("list")
def list_(kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {KINDS}.")]) -> None:
    """List what there is, with its options."""
    if kind not in list(listing.Kind):
        raise typer.BadParameter(f"there is no list of {kind!r}; there are {KINDS}")
    table = Table.grid(padding=(0, 2))
    for name, about in listing.rows(listing.Kind(kind)):
        table.add_row(Text(name), Text(about))
    out.print(table)


@app.command()
def run(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A .toml, .json or .py file, or the name of a built-in scenario.")
    ],
    seed: Annotated[int | None, typer.Option(min=0, help="Decides every random choice; drawn when left out.")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Run this often, with consecutive seeds.")] = 1,
    cluster: Backend = AUTO,
    cluster_config: Access = None,
    yes: Yes = False,
    runs: Runs = Path("runs"),
    check: Judged = True,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change an option: group.members=6.")
    ] = None,
    steer: Annotated[bool, typer.Option("--steer", help="Swarms aim at what no run below --runs has met.")] = False,
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Run a scenario on a real cluster and judge what happened."""
    from fencepost.repeat import coverage

    asked = override(loader.load(scenario), settings or ())
    first = secrets.randbelow(2**31) if seed is None else seed
    seeds = range(first, first + repeat)
    where = Where(runs, backend(cluster, cluster_config, yes), spark_master, spark_remote, check)
    drawn = [(asked, asked.drawn(number)) for number in seeds]
    where.ready(drawn)
    _leave(batch.perform_all(coverage.cases(asked, seeds, where) if steer else drawn, where))


@app.command("replay")
def replay_(
    run: Run,
    exact: Annotated[bool, typer.Option("--exact", help="Hit the members and brokers that were hit then.")] = False,
    repeat: Annotated[int, typer.Option(min=1, help="Replay it this often, and say how often promises break.")] = 1,
    cluster: Backend = AUTO,
    cluster_config: Access = None,
    yes: Yes = False,
    runs: Runs = Path("runs"),
    check: Judged = True,
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Perform the plan of an old run again.

    Times, faults and draws are those of the plan; selectors choose anew, unless --exact pins what they chose. The
    timing of brokers and clients stays free, and what depends on it may come out otherwise: --repeat tells how often.
    """
    from fencepost.repeat import replay

    asked, plan = replay.load(run)
    case = asked, replay.pinned(plan, run) if exact else plan
    where = Where(runs, backend(cluster, cluster_config, yes), spark_master, spark_remote, check)
    where.ready([case])
    _leave(batch.perform_all([case] * repeat, where))


@app.command("shrink")
def shrink_(
    run: Run,
    minutes: Annotated[float, typer.Option(min=0, help="When no further case is tried.")] = 30,
    failures: Annotated[int, typer.Option(min=1, help="So many runs of a case must fail for it to be kept,")] = 2,
    of: Annotated[int, typer.Option(min=1, help="of at most so many.")] = 3,
    rate_runs: Annotated[int, typer.Option(min=0, help="Runs that tell how often the smallest one fails.")] = 5,
    cluster: Backend = AUTO,
    cluster_config: Access = None,
    yes: Yes = False,
    runs: Runs = Path("runs"),
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Find the smallest plan that still breaks the worst broken promise of an old run.

    Fewer steps, records, members, partitions; steps sooner, shorter, on weaker targets: each is tried on a real cluster
    and kept if it still fails. All runs stay in a folder of their own under --runs. Exit code 3: it never failed again.
    """
    if failures > of:
        raise typer.BadParameter(f"{failures} failures of {of} runs cannot be")
    from fencepost.repeat import shrink

    effort = shrink.Effort(failures, of, minutes, rate_runs)
    shrunk = shrink.shrink(run, Where(runs, backend(cluster, cluster_config, yes), spark_master, spark_remote), effort)
    raise typer.Exit(Exit.VALID if shrink.show_shrunk(shrunk) else Exit.UNKNOWN)


@app.command()
def check(
    run: Run,
    only: Annotated[str, typer.Option(metavar="A,B", help="Judge these checks alone; the verdict is not stored.")] = "",
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Judge an old run again."""
    from fencepost.checkers.spark.session import Spark
    from fencepost.history.run_folder import RunFolder

    folder = RunFolder.open(run)
    names = tuple(name.strip() for name in only.split(",") if name.strip())
    with Spark.start(spark_master, remote=spark_remote) as spark:
        from fencepost.judging import judge  # its imports take a while, and Spark does not wait for them

        verdict = judge(folder.path, spark, names)
        show_verdict(verdict, folder.path, stored=not names)
    raise typer.Exit(OF_VALIDITY[verdict.validity])


@app.command()
def conform(
    output: Annotated[str, typer.Argument(metavar="FILE", help="What the program printed; - reads standard input.")],
) -> None:
    """Say whether a program tells what it does as a member with the client json-lines has to.

    It lists each line that cannot be believed, and what the program does not tell. Exit code 1: there is such a line.
    """
    from fencepost.cli import conformance

    found = conformance.examine(conformance.lines_of(output))
    for sentence in found.sentences():
        out.print(sentence, markup=False)
    raise typer.Exit(Exit.INVALID if found.faults else Exit.VALID)


@app.command()
def report(run: Run, open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False) -> None:
    """Draw the reports of a run again and say where they are."""
    from fencepost.history.run_folder import RunFolder
    from fencepost.judging import render
    from fencepost.reports.words import shown

    path = render(RunFolder.open(run).path)
    out.print(shown(path), markup=False)
    if open_:
        webbrowser.open(path.resolve().as_uri())


def main(argv: Sequence[str] | None = None) -> None:
    """The entry point: runs a command and leaves with its exit code; errors are sentences, not stack traces."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        with library_logs.quiet():
            app([arg for arg in args if arg != "--debug"], prog_name="fencepost")
    except Exception as error:
        if "--debug" in args:
            traceback.print_exc()
        if not isinstance(error, FencepostError):
            _complain(f"a defect of Fencepost itself: {type(error).__name__}: {error} (--debug shows where)")
            sys.exit(Exit.FAILED)
        _complain(str(error))
        sys.exit(Exit.USAGE if isinstance(error, ScenarioError | RunFolderError) else Exit.FAILED)


def _complain(sentence: str) -> None:
    print(f"fencepost: {visible(sentence)}", file=sys.stderr)


def _leave(validity: Validity | None) -> NoReturn:
    raise typer.Exit(Exit.VALID if validity is None else OF_VALIDITY[validity])
