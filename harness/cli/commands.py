"""The command line. Every command is a thin call into the harness. Slow imports happen inside the command.

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
from fencepost.cli.options import Access, Backend, Judged, Payload, Run, Runs, SparkMaster, SparkRemote, Yes
from fencepost.clusters import selection
from fencepost.clusters.names import AUTO, FOREIGN
from fencepost.clusters.selection import backend, existing
from fencepost.console import library_logs
from fencepost.console.terminal import out, show_verdict
from fencepost.errors import FencepostError, RunFolderError, ScenarioError
from fencepost.model import Validity
from fencepost.repeat import batch
from fencepost.repeat.batch import RunOptions
from fencepost.reports.formatting import plural, visible
from fencepost.scenario import loader
from fencepost.scenario.overrides import override


class Exit(IntEnum):
    """The meaning of each exit code."""

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
    """List the available and the missing parts of this machine, with remedies.

    Exit code 4: no run is possible here.
    """
    from fencepost.clusters import doctor as surgery

    findings = surgery.examine()
    for finding in findings:
        out.print(finding.line(), markup=False)
    chosen = selection.auto()
    out.print(f"\nA run uses the back-end {chosen} unless --cluster names another one ({chosen.why}).", markup=False)
    if missing := surgery.beyond_reach(surgery.missing_parts(chosen)):
        out.print(f"It is not possible yet: {', '.join(part.name for part in missing)}.", markup=False)
        raise typer.Exit(Exit.FAILED)


@app.command("list")
def list_(kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {KINDS}.")]) -> None:
    """List everything of one kind, with its options."""
    if kind not in list(listing.Kind):
        raise typer.BadParameter(f"there is no list of {kind!r}; use one of {KINDS}")
    table = Table.grid(padding=(0, 2))
    for name, about in listing.rows(listing.Kind(kind)):
        table.add_row(Text(name), Text(about))
    out.print(table)


@app.command()
def run(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A .toml, .json or .py file, or the name of a built-in scenario.")
    ],
    seed: Annotated[int | None, typer.Option(min=0, help="Determines every random choice; random by default.")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Number of runs, with consecutive seeds.")] = 1,
    cluster: Backend = AUTO,
    cluster_config: Access = None,
    yes: Yes = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show and check what the run would do; create nothing.")
    ] = False,
    runs: Runs = Path("runs"),
    check: Judged = True,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change an option: group.members=6.")
    ] = None,
    steer: Annotated[
        bool, typer.Option("--steer", help="Steer swarms to states and faults that no run below --runs has covered.")
    ] = False,
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Run a scenario on a real cluster and judge its history."""
    from fencepost.repeat import coverage

    asked = override(loader.load(scenario), settings or ())
    first = secrets.randbelow(2**31) if seed is None else seed
    seeds = range(first, first + repeat)
    where = RunOptions(runs, backend(cluster, cluster_config, yes), spark_master, spark_remote, check)
    drawn = [(asked, asked.drawn(number)) for number in seeds]
    where.ready(drawn)
    cases = coverage.cases(asked, seeds, where) if steer else drawn
    if dry_run:
        batch.dry_run(cases, where)
    else:
        _leave(batch.run_batch(cases, where))


@app.command("try")
def try_(
    command: Annotated[
        list[str], typer.Argument(metavar="PROGRAM", help="After --: the command that starts one member of the group.")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Only the six situations that find most.")] = False,
    only: Annotated[str, typer.Option(metavar="A,B", help="Only these; 'fencepost list situations' names them.")] = "",
    members: Annotated[int, typer.Option(min=1, help="Members of the group.")] = 3,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of each topic.")] = 12,
    payload: Payload = "",
    effects: Annotated[
        str, typer.Option(metavar="MODULE:FUNCTION", help="Lists the effects: function(settings) yields records.")
    ] = "",
    processed: Annotated[str, typer.Option(help="When a record counts as processed: next-poll, commit, told.")] = "",
    topics: Annotated[str, typer.Option(metavar="A,B", help="The topics, if they cannot be learned.")] = "",
    client: Annotated[str, typer.Option(metavar="black-box|json-lines", help="For a program that is not Python.")] = "",
    protocol: Annotated[str, typer.Option(help="The rebalance protocol of a program that is not Python.")] = "",
    image: Annotated[str, typer.Option(help="The image in which the program runs, with --cluster docker.")] = "",
    shorten_session: Annotated[
        float | None, typer.Option(min=1, metavar="SECONDS", help="Replace the program's session time-out.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the situations as one scenario, a .toml file.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Determines every random choice; random by default.")] = None,
    cluster: Backend = AUTO,
    cluster_config: Access = None,
    yes: Yes = False,
    runs: Runs = Path("runs"),
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Try a program of yours: fencepost try -- python -m shop.consumer

    What happens to it when members are restarted, killed or frozen, and when brokers move? The program is started once,
    to learn what it reads and how fast it is. Then each situation is a run of its own, and the card has a row for each.
    Exit code 1: a promise was broken; 3: a situation was not seen.
    """
    from fencepost.battery import conduct, display, saving, situations
    from fencepost.battery.request import BatteryRequest
    from fencepost.reports.formatting import shown

    if save:
        saving.check(save)
    request = BatteryRequest(
        tuple(command),
        members=members,
        partitions=partitions,
        topics=_words(topics),
        client=client,
        protocol=protocol,
        image=image,
        processed=processed,
        effects=effects,
        payload=payload,
        session_s=shorten_session,
    )
    chosen = situations.chosen(_words(only), quick)
    folder = conduct.make_folder(runs, command)
    where = RunOptions(folder, backend(cluster, cluster_config, yes), spark_master, spark_remote)
    number = secrets.randbelow(2**31) if seed is None else seed
    with where.judge() as spark, display.BatteryDisplay(out) as audience:
        program, load, card = conduct.Battery(request, chosen, number, folder, where, audience).run(spark)
    out.print(display.shown(card))
    if save:
        saving.save(situations.together(chosen, request, program, load), save)
        out.print(f"\nscenario: {shown(save)} (fencepost run {shown(save)})", markup=False)
    out.print(f"\ncard: {shown(folder / 'card.html')}", markup=False)
    raise typer.Exit(OF_VALIDITY[card.validity])


@app.command("replay")
def replay_(
    run: Run,
    exact: Annotated[bool, typer.Option("--exact", help="Hit the members and brokers that the old run hit.")] = False,
    repeat: Annotated[
        int, typer.Option(min=1, help="Number of replays; the result counts those that break a promise.")
    ] = 1,
    cluster: Backend = AUTO,
    cluster_config: Access = None,
    yes: Yes = False,
    runs: Runs = Path("runs"),
    check: Judged = True,
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Perform the plan of an old run again.

    The plan fixes times, faults and random choices. Selectors choose their targets again, unless --exact pins the
    former targets. Nothing controls the timing of brokers and clients, so a failure that depends on it may not
    reproduce: --repeat measures how often it does.
    """
    from fencepost.repeat import replay

    asked, plan = replay.load(run)
    case = asked, replay.pinned(plan, run) if exact else plan
    where = RunOptions(runs, backend(cluster, cluster_config, yes), spark_master, spark_remote, check)
    where.ready([case])
    _leave(batch.run_batch([case] * repeat, where))


@app.command("shrink")
def shrink_(
    run: Run,
    minutes: Annotated[float, typer.Option(min=0, help="Try no further case after this time.")] = 30,
    failures: Annotated[int, typer.Option(min=1, help="Keep a case if this many of its runs fail,")] = 2,
    of: Annotated[int, typer.Option(min=1, help="of at most this many.")] = 3,
    rate_runs: Annotated[int, typer.Option(min=0, help="Runs that measure how often the smallest case fails.")] = 5,
    cluster: Backend = AUTO,
    cluster_config: Access = None,
    yes: Yes = False,
    runs: Runs = Path("runs"),
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Find the smallest plan that still breaks the worst broken promise of an old run.

    It tries fewer steps, records, members and partitions, and steps that are earlier, shorter or on weaker targets. It
    runs each case on a real cluster and keeps it if it still fails. All runs stay in one new folder under --runs. Exit
    code 3: the failure did not reproduce.
    """
    if failures > of:
        raise typer.BadParameter(f"--failures ({failures}) must not exceed --of ({of})")
    from fencepost.repeat.shrink import shrinker

    effort = shrinker.Budget(failures, of, minutes, rate_runs)
    shrunk = shrinker.shrink(
        run, RunOptions(runs, backend(cluster, cluster_config, yes), spark_master, spark_remote), effort
    )
    raise typer.Exit(Exit.VALID if shrinker.show_shrunk(shrunk) else Exit.UNKNOWN)


@app.command()
def clean(
    cluster: Annotated[str, typer.Option(metavar=FOREIGN, help="A cluster that exists.")],
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="PREFIX", help="Remove the runs with these prefixes.")
    ] = None,
    cluster_config: Access = None,
    yes: Yes = False,
) -> None:
    """List the topics and groups that runs left in a cluster of yours, or remove those of some runs.

    Every run removes its own, also when the harness was killed, but not when its machine was lost. A run whose group
    has members is in use; it is not removed. Exit code 4: not everything could be removed.
    """
    from fencepost.clusters.attach import leftovers

    where = existing(cluster, cluster_config, yes)
    if not runs:
        found = leftovers.find(where)
        for leftover in found:
            groups = f"{plural(len(leftover.groups), 'group')} with {plural(sum(leftover.groups.values()), 'member')}"
            use = ", in use" if leftover.in_use else ""
            out.print(f"{leftover.prefix}  {plural(len(leftover.topics), 'topic')}, {groups}{use}", markup=False)
        hint = "To remove what a run left, name its prefix: fencepost clean PREFIX ... --cluster ..."
        out.print(hint if found else f"no run left anything on {where}", markup=False)
        return
    left = leftovers.remove(where, runs)
    for sentence in left:
        out.print(f"left in the cluster: {sentence}", markup=False)
    if left:
        raise typer.Exit(Exit.FAILED)
    out.print(f"removed: {', '.join(runs)}", markup=False)


@app.command()
def check(
    run: Run,
    only: Annotated[str, typer.Option(metavar="A,B", help="Run only these checks, and do not store the verdict.")] = "",
    processed: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="Judge your program by another rule for when a record counts as processed: commit. Do not store the "
            "verdict.",
        ),
    ] = "",
    spark_master: SparkMaster = "local[*]",
    spark_remote: SparkRemote = None,
) -> None:
    """Judge an old run again."""
    from fencepost.checkers.spark.session import Spark
    from fencepost.history.run_folder import RunFolder

    folder = RunFolder.open(run)
    names = _words(only)
    with Spark.start(spark_master, remote=spark_remote) as spark:
        from fencepost.judging import judge  # its slow imports overlap with the start of Spark

        verdict = judge(folder.path, spark, names, processed)
        show_verdict(verdict, folder.path, stored=not (names or processed))
        if processed:
            out.print(f"a record counts as processed by the rule {processed}; this verdict is not stored", markup=False)
    raise typer.Exit(OF_VALIDITY[verdict.validity])


@app.command()
def conform(
    output: Annotated[
        str, typer.Argument(metavar="FILE", help="A file with the program's output; - reads standard input.")
    ],
) -> None:
    """Check a program's output against the format of the client json-lines.

    It lists each invalid line, and the kinds of line that are missing. Exit code 1: there is an invalid line.
    """
    from fencepost.cli import conformance

    found = conformance.examine(conformance.lines_of(output))
    for sentence in found.sentences():
        out.print(sentence, markup=False)
    raise typer.Exit(Exit.INVALID if found.faults else Exit.VALID)


@app.command()
def report(run: Run, open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False) -> None:
    """Draw the reports of a run again and print their path."""
    from fencepost.history.run_folder import RunFolder
    from fencepost.judging import render
    from fencepost.reports.formatting import shown

    path = render(RunFolder.open(run).path)
    out.print(shown(path), markup=False)
    if open_:
        webbrowser.open(path.resolve().as_uri())


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code. Errors are printed as sentences, not as stack traces."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        with library_logs.quiet():
            app(_without_debug(args), prog_name="fencepost")
    except Exception as error:
        if len(_without_debug(args)) < len(args):
            traceback.print_exc()
        if not isinstance(error, FencepostError):
            _complain(f"a defect of Fencepost itself: {type(error).__name__}: {error} (--debug shows the stack trace)")
            sys.exit(Exit.FAILED)
        _complain(str(error))
        sys.exit(Exit.USAGE if isinstance(error, ScenarioError | RunFolderError) else Exit.FAILED)


def _without_debug(args: Sequence[str]) -> list[str]:
    """The arguments without our own ``--debug``: what follows ``--`` is the command of a program."""
    own = args.index("--") if "--" in args else len(args)
    return [arg for number, arg in enumerate(args) if arg != "--debug" or number > own]


def _words(text: str) -> tuple[str, ...]:
    """The words of a list with commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _complain(sentence: str) -> None:
    print(f"fencepost: {visible(sentence)}", file=sys.stderr)


def _leave(validity: Validity | None) -> NoReturn:
    raise typer.Exit(Exit.VALID if validity is None else OF_VALIDITY[validity])
