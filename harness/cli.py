"""The command line. Every command is a thin call into the harness; what is heavy is imported when it is needed.

Exit codes: 0 valid, 1 invalid, 2 bad usage, 3 unknown, 4 the harness itself failed, 130 interrupted.
"""

from __future__ import annotations

import secrets
import sys
import traceback
import webbrowser
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fencepost import catalogue, codec, listing
from fencepost.errors import FencepostError, RunFolderError, ScenarioError
from fencepost.model import Validity, Verdict
from fencepost.overrides import override
from fencepost.reports.words import visible
from fencepost.scenario import Scenario
from fencepost.schedule import Plan

if TYPE_CHECKING:
    from fencepost.checkers.spark.session import Spark


class Exit(IntEnum):
    """What the exit code of every command means."""

    VALID = 0
    INVALID = 1
    USAGE = 2
    UNKNOWN = 3
    FAILED = 4


OF_VALIDITY = {Validity.VALID: Exit.VALID, Validity.INVALID: Exit.INVALID, Validity.UNKNOWN: Exit.UNKNOWN}

KINDS = ", ".join(listing.Kind)
LOG_COLUMNS = 160  # where no terminal says how wide it is


class Terminal(Console):
    """A console on which strings of a run cannot move the cursor, set a title or hide: their escapes are shown."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What rich renders, but for what it did not make itself."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


app = typer.Typer(
    name="fencepost", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)
out = Terminal(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else LOG_COLUMNS)

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
SparkMaster = Annotated[
    str, typer.Option(metavar="URL", help="Where Spark runs: local[*], spark://..., yarn, k8s://...")
]
SparkRemote = Annotated[str | None, typer.Option(metavar="URL", help="A Spark Connect server: sc://...")]


@app.callback()
def common(debug: Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")] = False) -> None:
    """Chaos tests for Kafka consumer groups: real faults, proven; real histories, judged.

    Exit codes: 0 valid, 1 invalid, 2 bad usage, 3 unknown, 4 the harness itself failed.
    """


@app.command()
def doctor() -> None:
    """Say what this machine has and lacks, with remedies.

    Exit code 4: no run is possible here.
    """
    from fencepost import doctor as surgery

    findings = surgery.examine()
    for finding in findings:
        out.print(finding.line(), markup=False)
    if missing := surgery.blocking(findings):
        out.print(f"\nA local run is not possible yet: {', '.join(f.name for f in missing)}.", markup=False)
        raise typer.Exit(Exit.FAILED)
    out.print("\nA local run is possible.")


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
    cluster: Annotated[str, typer.Option(help="The back-end.")] = "local",
    runs: Annotated[Path, typer.Option(help="Where run folders are made.")] = Path("runs"),
    check: Annotated[bool, typer.Option("--check/--no-check", help="Judge the run afterwards.")] = True,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change an option: group.members=6.")
    ] = None,
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Run a scenario on a real cluster and judge what happened."""
    asked = override(catalogue.load(scenario), settings or ())
    first = secrets.randbelow(2**31) if seed is None else seed
    for number in range(first, first + repeat):
        asked.plan(number)  # what cannot be done is said before anything is imported, let alone started
    from fencepost import doctor as surgery
    from fencepost.runner import BACKENDS

    if cluster not in BACKENDS:
        raise typer.BadParameter(f"there is no back-end {cluster!r}; there is {', '.join(BACKENDS)}")
    surgery.require(runs)
    from fencepost.checkers.spark.session import Spark

    # Its start overlaps with the first cluster's; it idles during chaos.
    starting = Spark.start(spark_master, remote=spark_remote) if check else nullcontext()
    with starting as spark:
        seeds = range(first, first + repeat)
        verdicts = [verdict for number in seeds if (verdict := _run_once(asked, number, cluster, runs, spark))]
    if repeat > 1 and check:
        tally = {v: sum(verdict.validity is v for verdict in verdicts) for v in Validity}
        out.print(f"{repeat} runs: " + ", ".join(f"{count} {validity}" for validity, count in tally.items()))
    raise typer.Exit(OF_VALIDITY[Validity.worst(v.validity for v in verdicts)] if check else Exit.VALID)


@app.command()
def check(
    run: Run,
    only: Annotated[str, typer.Option(metavar="A,B", help="Judge these checks alone; the verdict is not stored.")] = "",
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Judge an old run again."""
    from fencepost.checkers.spark.session import Spark
    from fencepost.store import RunFolder

    folder = RunFolder.open(run)
    names = tuple(name.strip() for name in only.split(",") if name.strip())
    with Spark.start(spark_master, remote=spark_remote) as spark:
        from fencepost.judging import judge  # its imports take a while, and Spark does not wait for them

        verdict = judge(folder.path, spark, names)
        _show(verdict, folder.path, stored=not names)
    raise typer.Exit(OF_VALIDITY[verdict.validity])


@app.command()
def report(run: Run, open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False) -> None:
    """Draw the reports of a run again and say where they are."""
    from fencepost.judging import render
    from fencepost.reports.words import shown
    from fencepost.store import RunFolder

    path = render(RunFolder.open(run).path)
    out.print(shown(path), markup=False)
    if open_:
        webbrowser.open(path.resolve().as_uri())


def main(argv: Sequence[str] | None = None) -> None:
    """The entry point: runs a command and leaves with its exit code; errors are sentences, not stack traces."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
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


def _run_once(scenario: Scenario, seed: int, cluster: str, runs: Path, spark: Spark | None) -> Verdict | None:
    from fencepost import progress, runner
    from fencepost.judging import judge
    from fencepost.reports.words import shown

    out.print(f"{scenario.name}, seed {seed}", style="bold")
    _show_plan(scenario.plan(seed))
    with progress.view(out) as watcher:
        folder = runner.run(scenario, seed=seed, runs=runs, observe=watcher, backend=cluster)
    if spark is None:
        out.print(f"history: {shown(folder)}", markup=False)
        return None
    verdict = judge(folder, spark)
    _show(verdict, folder)
    return verdict


def _show_plan(plan: Plan) -> None:
    for step in plan.steps:
        parts = [f"  at {step.at_s:5.1f} s  {codec.snake(type(step.fault).__name__)}"]
        if step.target is not None:
            parts.append(f"on {codec.snake(type(step.target).__name__)}")
        if step.heal_after_s is not None:
            parts.append(f"for {step.heal_after_s:g} s")
        if step.expect:
            parts.append(f"expecting {step.expect}")
        out.print(" ".join(parts), markup=False)


def _show(verdict: Verdict, folder: Path, *, stored: bool = True) -> None:
    from fencepost.brief import every_check
    from fencepost.reports import text

    if stored:
        out.print(text.summary(folder))
        return
    for line in every_check(verdict):
        out.print(line, markup=False)
