"""What plain Spark asks about who worked on what when; see ``rival_spark``. The small tables are broadcast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn
from pyspark.sql.functions import col

STREAM = ["tp", "who", "interval"]
FIRST_DONE = "min(case when state in (2, 3) then done_ns end) as done_ns"


def counted(frame: DataFrame, kind: str, count: Column | None = None) -> DataFrame:
    """A row with a kind and how many there are: of rows, or as ``count`` says."""
    count = fn.count(fn.lit(1)) if count is None else count
    return frame.agg(count.cast("bigint").alias("n")).select(fn.lit(kind).alias("kind"), "n")


def firsts(delivered: DataFrame) -> Iterable[tuple[int, str, int, int, int]]:
    """The first delivery of each interval."""
    first = fn.min_by(fn.struct("offset", "delivered_ns"), "ord").alias("first")
    rows = delivered.where("interval >= 0").groupBy(STREAM).agg(first).select(*STREAM, "first.*").collect()
    return (tuple(row) for row in rows)


def misplaced(delivered: DataFrame, intervals: DataFrame) -> Sequence[DataFrame]:
    """Deliveries before their intervals, and outside of all."""
    own = intervals.select(*STREAM, col("begin_ns").alias("since_ns"))
    early = delivered.join(own, on=STREAM).where("delivered_ns < since_ns")
    held = (delivered.tp == intervals.tp) & (delivered.who == intervals.who)
    held &= delivered.delivered_ns.between(intervals.begin_ns, intervals.end_ns)
    unnamed = delivered.join(own, on=STREAM, how="left_anti")
    outside = unnamed.join(intervals, on=held, how="left_anti")
    return [counted(early, "history-incomplete"), counted(outside, "delivery-outside-assignment")]


def stale(delivered: DataFrame, intervals: DataFrame, given: DataFrame) -> Sequence[DataFrame]:
    """Begun after the interval was given up, or while the partition was another one's."""
    own = intervals.select(*STREAM, "late_ns")
    begun = (
        delivered.where("begin_ns > 0").select(*STREAM, "ord", "offset", "begin_ns").join(own, on=STREAM).alias("row")
    )
    again = "own.tp = row.tp and own.who = row.who and row.begin_ns between own.begin_ns and own.end_ns"
    late = begun.where("begin_ns > late_ns").join(intervals.alias("own"), on=fn.expr(again), how="left_anti")
    late = late.localCheckpoint()
    other = "given.tp = row.tp and given.who <> row.who"
    other += " and given.begin_ns <= row.begin_ns and row.begin_ns < given.end_ns"
    foreign = begun.join(given.alias("given"), on=fn.expr(other), how="left_semi")
    backlog = foreign.join(fn.broadcast(late), on=[*STREAM, "ord", "offset"], how="left_anti")
    return [counted(late, "processing-after-revocation"), counted(backlog, "work-after-reassignment")]


def overlapped(delivered: DataFrame, intervals: DataFrame, free: DataFrame) -> DataFrame:
    """Records are compared only where the times of two incarnations' intervals meet."""
    rows = delivered.where("begin_ns > 0 and done_ns > begin_ns")
    spans = rows.groupBy(STREAM).agg(fn.min("begin_ns").alias("begin_ns"), fn.max("done_ns").alias("end_ns"))
    spans = spans.localCheckpoint()
    meet = "a.tp = b.tp and a.who < b.who and a.begin_ns < b.end_ns and b.begin_ns < a.end_ns"
    begin, end = fn.greatest("a.begin_ns", "b.begin_ns"), fn.least("a.end_ns", "b.end_ns")
    met = spans.alias("a").join(spans.alias("b"), on=fn.expr(meet))
    met = met.select(col("a.tp").alias("tp"), begin.alias("from_ns"), end.alias("to_ns")).localCheckpoint()
    near = (rows.tp == met.tp) & (rows.begin_ns < met.to_ns) & (rows.done_ns > met.from_ns)
    near_rows = rows.select(*STREAM, "ord", "offset", "begin_ns", "done_ns").join(fn.broadcast(met), near, "left_semi")
    own = intervals.select(*STREAM, col("begin_ns").alias("since_ns"))
    times = free.select(col("who"), col("begin_ns").alias("from_ns"), col("end_ns").alias("to_ns"))
    work = near_rows.join(own, on=STREAM, how="left").fillna(0, ["since_ns"]).join(times, on="who")
    work = work.where("begin_ns < to_ns and done_ns > from_ns")
    work = work.withColumn("begin_ns", fn.greatest("begin_ns", "from_ns"))
    work = work.withColumn("done_ns", fn.least("done_ns", "to_ns")).localCheckpoint()
    both = "s.tp = o.tp and s.who <> o.who and s.begin_ns < o.done_ns and o.begin_ns < s.done_ns"
    both += " and (s.since_ns < o.since_ns or (s.since_ns = o.since_ns and s.who < o.who))"
    pairs = work.alias("s").join(work.alias("o"), on=fn.expr(both))
    return counted(pairs.select("s.tp", "s.who", "s.ord", "s.offset", "o.who").distinct(), "processing-overlap")


def key_order(delivered: DataFrame) -> DataFrame:
    """The first start and the first finish of each offset, along the offsets of its key."""
    key = fn.min_by("key", fn.struct("delivered_ns", "who", "ord")).alias("key")
    begun = fn.min(fn.when(col("begin_ns") > 0, col("begin_ns"))).alias("begin_ns")
    offsets = delivered.groupBy("tp", "offset").agg(key, begun, fn.expr(FIRST_DONE))
    before = Window.partitionBy("tp", "key").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    placed = offsets.withColumn("latest", fn.max("done_ns").over(before))
    return counted(placed.where("begin_ns < latest"), "key-order")


def ahead(delivered: DataFrame, log: DataFrame, passes: DataFrame) -> DataFrame:
    """Commits meet records by blocks of offsets, so that none is compared with all."""
    end = log.groupBy("tp").agg(fn.max("offset").alias("last"))
    blocks = fn.expr("sequence(shiftright(low, 9), shiftright(least(high - 1, last), 9))")
    cut = passes.join(end, "tp").where("low <= last").withColumn("block", fn.explode(blocks))
    done = delivered.groupBy("tp", "offset").agg(fn.expr(FIRST_DONE))
    records = log.select("tp", "offset", fn.shiftright("offset", 9).alias("block"))
    passed = records.join(fn.broadcast(cut), ["tp", "block"]).where("offset >= low and offset < high")
    passed = passed.join(done, ["tp", "offset"], "left").where("done_ns is null or done_ns > begin_ns")
    return counted(passed, "commit-ahead")
