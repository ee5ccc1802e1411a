"""Finds the anomalies of a run on Spark: the same set as the oracle, at any size.

The driver reads the footers of files and the small tables, and cuts tasks. Spark performs these (``kernel``) in one
job, and the driver sums their results. If parts of a cut partition cannot be judged alone, there is a second job. The
driver itself runs the rules that need no records.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.checkers import group_rules
from fencepost.checkers.counts import Bounds, JudgedCounts
from fencepost.checkers.detections import Detection, run_rules
from fencepost.checkers.kernel.partitioning import WIDTH, RowGroup, Task, cut, read_groups
from fencepost.checkers.spark.engine import in_own_thread
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.gc_pause import no_collecting
from fencepost.checkers.tables.rows import Damage
from fencepost.history.run_folder import part_of
from fencepost.model import Anomaly

if TYPE_CHECKING:
    from fencepost.checkers.group_rules.rule import Rule
    from fencepost.checkers.kernel.aggregates import Aggregates
    from fencepost.checkers.kernel.context import KernelContext
    from fencepost.checkers.spark.engine import Engine, HasEngine

COUNTED = ("acknowledged", "visible", "judged", "delivered", "begun", "finished")
BUNDLES_EACH, MOST_EACH = 2, 16  # bundles per core; each reads the footers of its files, which are long in long runs
BUNDLE_ROWS = 12_000_000
TASK_ROWS = 20_000  # the fixed cost of a task, in rows
Perform = Callable[["KernelContext", Sequence[Task]], "Aggregates"]


def detector(spark: HasEngine) -> Callable[[Path, Tables, Bounds], tuple[list[Anomaly], JudgedCounts]]:
    """``find`` on one session, in the form that ``fencepost.checkers.judge`` expects."""
    return lambda run, tables, bounds: find(run, tables, bounds, spark)


def find(
    run: Path, tables: Tables, bounds: Bounds, spark: HasEngine, width: int = WIDTH
) -> tuple[list[Anomaly], JudgedCounts]:
    """Every anomaly in the history of ``run``, sorted, and how many records were judged.

    Args:
        spark: the session that reads the records; this function waits for it.
        width: partitions with more records than this are cut.

    Raises:
        WaitTimeout, ProvisionError: there is no Spark.
    """
    history = (run / "history").resolve()
    engine = spark.get()
    return _find(run, tables, bounds, width, lambda *asked: in_own_thread(lambda: _on_spark(engine, history, *asked)))


def find_here(run: Path, tables: Tables, bounds: Bounds, width: int = WIDTH) -> tuple[list[Anomaly], JudgedCounts]:
    """The same in this process, without Spark: for tests and comparisons."""
    from fencepost.checkers.kernel import perform

    return _find(run, tables, bounds, width, partial(perform, run / "history"))


@no_collecting()
def _find(
    run: Path, tables: Tables, bounds: Bounds, width: int, perform: Perform
) -> tuple[list[Anomaly], JudgedCounts]:
    from fencepost.checkers.kernel.aggregates import Label
    from fencepost.checkers.kernel.context import KernelContext
    from fencepost.checkers.kernel.recovery import too_many_duplicates
    from fencepost.checkers.spark.boundaries import boundary_tasks

    groups, damage = read_groups(run)
    tasks = cut(groups, tables.partitions, width)
    parts = frozenset(task.tp for task in tasks if task.rules == "offsets")
    judged = KernelContext.of(tables, bounds, _starts(tables, groups), parts)
    aggregates = perform(judged, tasks)
    again = boundary_tasks(aggregates, groups)
    if again:
        for (kind, tp, members, cause, excuse), numbers in perform(judged, again).items():
            aggregates.put(kind, tp, Label(members, cause, excuse), numbers)
    too_many_duplicates(aggregates, bounds.done_again)
    also, failed = run_rules(_rules_of_driver(aggregates, groups, judged), tables)
    aggregates.put_detections(also)
    return aggregates.anomalies(tables.partitions), _facts(aggregates, failed, damage)


def _rules_of_driver(
    aggregates: Aggregates, groups: Sequence[RowGroup], judged: KernelContext
) -> dict[Rule, tuple[str, ...]]:
    """The rules that the driver runs: over the small tables, the results of the tasks, and the footers of the files."""
    from fencepost.checkers.kernel.commits import off_by_one_of
    from fencepost.checkers.kernel.members import stuck_member_of
    from fencepost.checkers.kernel.ownership import assignment_overlap

    reached: dict[int, int] = {}
    for group in groups:
        reached[group.tp] = max(reached.get(group.tp, 0), group.high + 1)

    def off_by_one(tables: Tables) -> Iterator[Detection]:
        return off_by_one_of(aggregates, tables)

    def commit_above_end(tables: Tables) -> Iterator[Detection]:
        return group_rules.commits.commit_above_end(tables, reached)

    def stuck_member(tables: Tables) -> Iterator[Detection]:
        return stuck_member_of(aggregates, judged)

    own: dict[Rule, tuple[str, ...]] = {
        assignment_overlap: ("assignment-overlap",),
        off_by_one: ("off-by-one",),
        commit_above_end: ("commit-beyond-end",),
        stuck_member: ("stuck-member",),
    }
    return {**group_rules.RULES, **own}


def _starts(tables: Tables, groups: Sequence[RowGroup]) -> Mapping[int, int]:
    """Where the group starts in each partition: at the log's start. If it resets to the end: at the lowest offset that
    was delivered, or that was certainly the group's by the time at which it was sent (``starts_at_end``)."""
    starts = {tp: partition.log_start for tp, partition in tables.partitions.items()}
    if not tables.resets_to_end:
        return starts
    lowest = {**dict.fromkeys({*starts, *(group.tp for group in groups)}, (1 << 63) - 1), **tables.first_written}
    for group in groups:
        if group.folder == "delivered":
            lowest[group.tp] = min(lowest[group.tp], group.low)
    return lowest


def _facts(aggregates: Aggregates, failed: Mapping[str, str], damage: tuple[Damage, ...]) -> JudgedCounts:
    numbers = {kind: n for (kind, *_), n in aggregates.items() if kind.startswith("#")}
    counts: dict[str, Any] = {name: numbers[f"#{name}"].count for name in COUNTED if f"#{name}" in numbers}
    unjudged = {kind: cause for (name, _, kinds, cause, _) in aggregates if name == "#failed" for kind in kinds}
    broken = [(*file, what) for (name, _, file, what, _) in aggregates if name == "#damaged"]
    damage += tuple(Damage(part_of(file), file, what) for file, what in sorted(broken))
    delivered = numbers.get("#delivered")
    first_ns, last_ns = (delivered.from_ns, delivered.to_ns) if delivered else (0, 0)
    return JudgedCounts(**counts, first_ns=first_ns, last_ns=last_ns, failed={**failed, **unjudged}, damage=damage)


def _on_spark(engine: Engine, history: Path, judged: KernelContext, tasks: Sequence[Task]) -> Aggregates:
    """Perform tasks as one Spark job. A worker performs one bundle of tasks in one turn.

    Each worker receives only file names and the small tables, once, and returns only aggregates. A turn unpacks only
    the small tables of its own tasks' partitions.
    """
    from fencepost.checkers import kernel
    from fencepost.checkers.kernel.aggregates import Aggregates
    from fencepost.checkers.spark import executors

    if not tasks:  # there may be no history folder, and executors would report that they do not see it
        return Aggregates()
    bundles = _bundles(tasks, engine.cores)
    common, rows_of_bundles = judged.split([{task.tp for task in bundle} for bundle in bundles])
    packed = [pickle.dumps(of_bundle) for of_bundle in zip(bundles, rows_of_bundles, strict=True)]

    def turn(number: int) -> Aggregates:
        if not history.is_dir():
            raise FileNotFoundError(f"{executors.GONE} {history}")
        bundle, rows = pickle.loads(packed[number])
        return kernel.perform(history, common.together(rows), bundle)

    with executors.explained(engine):
        return Aggregates.sum(engine.map(turn, len(bundles)))


def _bundles(tasks: Sequence[Task], cores: int) -> list[list[Task]]:
    """The tasks of each turn of a worker: few bundles for small runs, small bundles for large ones.

    Tasks of one partition share a bundle unless it gets too large: a turn loads the small tables of its partitions.
    """
    total = _load(tasks)
    most = max(BUNDLES_EACH * cores, min(total // BUNDLE_ROWS, MOST_EACH * cores))
    blocks: list[list[Task]] = []
    for task in sorted(tasks, key=lambda task: task.tp):
        if blocks and blocks[-1][0].tp == task.tp and _load([*blocks[-1], task]) * most <= total:
            blocks[-1].append(task)
        else:
            blocks.append([task])
    bundles: list[list[Task]] = [[] for _ in range(max(1, min(len(blocks), most)))]
    loads = [0] * len(bundles)
    for block in sorted(blocks, key=_load, reverse=True):  # each to the bundle with the smallest load
        least = loads.index(min(loads))
        bundles[least] += block
        loads[least] += _load(block)
    return bundles


def _load(tasks: Sequence[Task]) -> int:
    return sum(task.rows + TASK_ROWS for task in tasks)


def warm_up(engine: Engine) -> None:
    """Judge an empty history, so that classes are loaded and the workers run."""
    from fencepost.checkers.kernel.context import KernelContext

    nowhere = Path()
    tasks = [Task(tp, 0, 0) for tp in range(BUNDLES_EACH * engine.cores)]
    _on_spark(engine, nowhere, KernelContext(Tables(nowhere), Bounds(), {}), tasks)
