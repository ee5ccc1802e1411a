"""DataFrames: the tallies of all tasks, in named steps from table to table."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from fencepost.checkers import kernel
from fencepost.checkers.kernel.judged import Judged
from fencepost.checkers.kernel.ranges import Task
from fencepost.checkers.kernel.tallies import Label, Numbers, Tallies
from fencepost.checkers.spark import executors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TALLY = "kind string, tp int, members array<string>, cause string, excuse string, count bigint, \
first bigint, last bigint, from_ns bigint, to_ns bigint"
COLUMNS = ("kind", "tp", "members", "cause", "excuse", "count", "first", "last", "from_ns", "to_ns")
STRUCT = pa.struct(
    [
        *(("kind", pa.string()), ("tp", pa.int32()), ("members", pa.list_(pa.string()))),
        *(("cause", pa.string()), ("excuse", pa.string())),
        *((name, pa.int64()) for name in COLUMNS[5:]),
    ]
)


def rows_of(tallies: Tallies) -> list[tuple[object, ...]]:
    """Tallies as rows of ``COLUMNS``."""
    return [(*key, *numbers) for key, numbers in tallies.items()]


def tallies_of(frame: DataFrame) -> Tallies:
    """The rows of a frame with ``COLUMNS`` as tallies: the one place that collects."""
    found = Tallies()
    for row in frame.toArrow().to_pylist():
        label = Label(tuple(row["members"]), row["cause"], row["excuse"])
        found.put(row["kind"], row["tp"], label, Numbers(*(row[name] for name in COLUMNS[5:])))
    return found


def added_up(frame: DataFrame) -> DataFrame:
    """One row for each key: the sum of counts, the extremes of offsets (-1: none) and times (0: none)."""
    from pyspark.sql import functions as fn

    numbers = (
        fn.sum("count").alias("count"),
        fn.coalesce(fn.min(fn.when(fn.col("first") >= 0, fn.col("first"))), fn.lit(-1)).alias("first"),
        fn.max("last").alias("last"),
        fn.coalesce(fn.min(fn.when(fn.col("from_ns") != 0, fn.col("from_ns"))), fn.lit(0)).alias("from_ns"),
        fn.max("to_ns").alias("to_ns"),
    )
    return frame.groupBy(*COLUMNS[:5]).agg(*numbers).select(*COLUMNS)


def judged(session: SparkSession, history: Path, what: Judged, bundles: Sequence[Sequence[Task]]) -> DataFrame:
    """The tallies of all tasks, not added up; one bundle is what a worker performs in one turn.

    What goes to the workers are names of files and the small tables, once to each, and only tallies come back. A turn
    unpacks no more of them than what its own tasks need to know of their partitions.
    """
    from pyspark.sql.functions import arrow_udf, inline  # type: ignore[attr-defined]  # missing in its stubs

    common, rows_of_bundles = what.apart([{task.tp for task in bundle} for bundle in bundles])
    packed = [pickle.dumps(of_bundle) for of_bundle in zip(bundles, rows_of_bundles, strict=True)]

    def turn(number: int) -> Tallies:
        tasks, rows = pickle.loads(packed[number])
        return kernel.perform(history, common.together(rows), tasks)

    def perform(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        if not history.is_dir():
            raise FileNotFoundError(f"{executors.GONE} {history}")
        for batch in batches:
            answers = map(turn, batch.to_pylist())
            rows = [[dict(zip(COLUMNS, row, strict=True)) for row in rows_of(tallies)] for tallies in answers]
            yield pa.array(rows, pa.list_(STRUCT))

    answer = arrow_udf(perform, f"array<struct<{TALLY}>>")
    return session.range(0, len(bundles), 1, len(bundles)).select(inline(answer("id")))
