"""The judge's findings about records in plain Spark: windows, joins and groups, as one would write them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import rival_spark_times
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.functions import col
from rival_spark_times import counted
from rivals import Answer, Run, answer

CORES = 2
HEAP = "8g"
CONTENT = ["tp", "offset", "key", "writer", "seq"]
STREAM = ["tp", "who", "interval"]


def session() -> SparkSession:
    """A session for large tables: adaptive plans and generated code as Spark has them by default."""
    settings = {
        "spark.driver.memory": HEAP,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(4 * CORES),
        "spark.sql.autoBroadcastJoinThreshold": str(10 << 20),
        "spark.local.dir": os.environ.get("TMPDIR", "/tmp"),
    }
    builder = SparkSession.builder.master(f"local[{CORES}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def judge(folder: Path) -> Answer:
    """The findings of one run, a query for each few kinds."""
    spark, run = session(), Run.read(folder)
    file = fn.regexp_replace(fn.col("_metadata.file_name"), r"\.parquet$", "")
    delivered = spark.read.parquet(*run.delivered).withColumn("who", file)
    produced, log = spark.read.parquet(*run.produced), spark.read.parquet(*run.log)
    sends = spark.read.parquet(*run.produced, *run.unacked).select("tp", "key", "writer", "seq", "outcome")
    owned, accepted = spark.createDataFrame(run.owned), spark.createDataFrame(run.accepted)
    small = (run.domain, run.intervals, run.given, run.free)
    domain, intervals, given, free = (fn.broadcast(spark.createDataFrame(table)) for table in small)
    passes = fn.broadcast(spark.createDataFrame(run.passes(rival_spark_times.firsts(delivered))))
    found = [
        _lost_writes(produced, log, domain),
        *_strange(delivered, log, sends, domain),
        *_unseen(delivered, log, domain),
        _repeated(delivered),
        _inconsistent(delivered),
        *_order(delivered, log),
        _incomplete(delivered),
        *_landed(log),
        *rival_spark_times.misplaced(delivered, intervals),
        *rival_spark_times.stale(delivered, intervals, given),
        rival_spark_times.overlapped(delivered, intervals, free),
        rival_spark_times.key_order(delivered),
        rival_spark_times.ahead(delivered, log, passes),
        _overlaps(owned),
        _regressions(accepted),
    ]
    return answer((row["kind"], row["n"]) for one in found for row in one.collect())


def _lost_writes(produced: DataFrame, log: DataFrame, domain: DataFrame) -> DataFrame:
    acked = produced.where("outcome = 0").join(domain, "tp").where("offset >= log_start")
    lost = acked.join(log, on=["tp", "offset", "writer", "seq"], how="left_anti")
    return counted(lost, "lost-write")


def _strange(delivered: DataFrame, log: DataFrame, sends: DataFrame, domain: DataFrame) -> Sequence[DataFrame]:
    record = ["tp", "key", "writer", "seq"]
    strange = delivered.select(*CONTENT).join(domain, "tp").where("offset >= log_start")
    strange = strange.join(log, on=CONTENT, how="left_anti").localCheckpoint()
    calls = sends.join(strange, on=record, how="left_semi").groupBy(record).agg(fn.max("outcome").alias("outcome"))
    known = strange.join(calls, on=record, how="left").localCheckpoint()
    kinds = {"phantom": "outcome is null", "delivered-then-lost": "outcome <> 3", "aborted-read": "outcome = 3"}
    return [counted(known.where(which), kind) for kind, which in kinds.items()]


def _unseen(delivered: DataFrame, log: DataFrame, domain: DataFrame) -> Sequence[DataFrame]:
    finished = delivered.where("state in (2, 3)").select("tp", "offset")
    missed = log.select("tp", "offset").join(finished, on=["tp", "offset"], how="left_anti").join(domain, "tp")
    kinds = {"unseen": "offset >= start and offset < stop", "unconsumed": "offset >= left"}
    missed = missed.localCheckpoint()
    return [counted(missed.where(which), kind) for kind, which in kinds.items()]


def _repeated(delivered: DataFrame) -> DataFrame:
    """Only offsets that occur again are looked at by stream: a distinct count of all would shuffle twice."""
    finished = delivered.where("state in (2, 3)").select(*STREAM, "offset")
    stream = fn.struct("who", "interval")
    streams = finished.groupBy("tp", "offset").agg(fn.size(fn.collect_set(stream)).alias("streams"))
    return counted(streams.where("streams > 1"), "redelivery", fn.sum(col("streams") - 1))


def _inconsistent(delivered: DataFrame) -> DataFrame:
    of_offset = Window.partitionBy("tp", "offset").orderBy("delivered_ns", "who", "ord")
    content = fn.struct("key", "writer", "seq")
    rows = delivered.withColumn("differs", content != fn.first(content).over(of_offset))
    return counted(rows.where("differs"), "inconsistent-offsets")


def _incomplete(delivered: DataFrame) -> DataFrame:
    before = fn.lag("ord", 1, -1).over(Window.partitionBy("tp", "who").orderBy("ord"))
    gaps = delivered.withColumn("gap", col("ord") - before - 1).where("gap <> 0")
    return counted(gaps, "history-incomplete", fn.sum(fn.when(col("gap") > 0, col("gap")).otherwise(1)))


def _landed(log: DataFrame) -> Sequence[DataFrame]:
    of_writer = Window.partitionBy("tp", "writer").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    rows = log.where("writer >= 0").withColumn("highest", fn.max("seq").over(of_writer))
    fallen = rows.where("seq <= highest").select("tp", "writer", "offset", "seq", "highest").localCheckpoint()
    earlier = log.select("tp", "writer", "seq", col("offset").alias("earlier"))
    twin = [col(f"one.{name}") == col(f"other.{name}") for name in ("tp", "writer", "seq")]
    twin.append(col("other.earlier") < col("one.offset"))
    twice = fallen.alias("one").join(earlier.alias("other"), on=twin, how="left_semi")
    once = fallen.alias("one").join(earlier.alias("other"), on=twin, how="left_anti")
    return [counted(twice, "duplicate-write"), counted(once, "nonmonotonic-send")]


def _order(delivered: DataFrame, log: DataFrame) -> Sequence[DataFrame]:
    before = Window.partitionBy(*STREAM).orderBy("ord").rowsBetween(Window.unboundedPreceding, -1)
    rows = delivered.where("interval >= 0").select(*STREAM, "ord", "offset")
    placed = rows.withColumn("highest", fn.max("offset").over(before))
    odd = placed.where("offset <= highest or offset > highest + 1").localCheckpoint()
    gaps = fn.broadcast(odd.where("offset > highest").select("tp", "highest", col("offset").alias("low")))
    inside = (log["tp"] == gaps["tp"]) & (log["offset"] > gaps["highest"]) & (log["offset"] < gaps["low"])
    return [counted(odd.where("offset <= highest"), "rewind"), counted(log.join(gaps, on=inside), "poll-skip")]


def _overlaps(owned: DataFrame) -> DataFrame:
    before = Window.partitionBy("tp").orderBy("n").rowsBetween(Window.unboundedPreceding, -1)
    late = owned.withColumn("running", fn.max("end_ns").over(before)).where("begin_ns < running").alias("late")
    pair = "early.tp = late.tp and early.who <> late.who and early.n < late.n and early.end_ns > late.begin_ns"
    return counted(late.join(owned.alias("early"), on=fn.expr(pair)), "assignment-overlap")


def _regressions(accepted: DataFrame) -> DataFrame:
    before = fn.lag("offset").over(Window.partitionBy("tp").orderBy("n"))
    return counted(accepted.withColumn("before", before).where("offset >= 0 and offset < before"), "commit-regression")
