"""The judge's core findings in plain Spark: windows, joins and groups over DataFrames, as one would write them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.functions import col
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
    """The findings of one run, in one job."""
    spark, run = session(), Run.read(folder)
    delivered = spark.read.parquet(*run.delivered).withColumn("who", fn.col("_metadata.file_name"))
    produced, log = spark.read.parquet(*run.produced), spark.read.parquet(*run.log)
    sends = spark.read.parquet(*run.produced, *run.unacked).select("tp", "key", "writer", "seq")
    domain, owned, accepted = (spark.createDataFrame(table) for table in (run.domain, run.owned, run.accepted))
    domain = fn.broadcast(domain)
    found = [
        _lost_writes(produced, log, domain),
        *_strange(delivered, log, sends, domain),
        _unseen(delivered, log, domain),
        _repeated(delivered),
        *_order(delivered, log),
        _overlaps(owned),
        _regressions(accepted),
    ]
    return answer((row["kind"], row["n"]) for one in found for row in one.collect())


def _counted(frame: DataFrame, kind: str, count: Column | None = None) -> DataFrame:
    count = fn.count(fn.lit(1)) if count is None else count
    return frame.agg(count.cast("bigint").alias("n")).select(fn.lit(kind).alias("kind"), "n")


def _lost_writes(produced: DataFrame, log: DataFrame, domain: DataFrame) -> DataFrame:
    acked = produced.where("outcome = 0").join(domain, "tp").where("offset >= log_start")
    lost = acked.join(log, on=["tp", "offset", "writer", "seq"], how="left_anti")
    return _counted(lost, "lost-write")


def _strange(delivered: DataFrame, log: DataFrame, sends: DataFrame, domain: DataFrame) -> Sequence[DataFrame]:
    strange = delivered.select(*CONTENT).join(domain, "tp").where("offset >= log_start")
    strange = strange.join(log, on=CONTENT, how="left_anti").localCheckpoint()
    sent = strange.join(sends, on=["tp", "key", "writer", "seq"], how="left_semi")
    never = strange.join(sends, on=["tp", "key", "writer", "seq"], how="left_anti")
    return [_counted(sent, "delivered-then-lost"), _counted(never, "phantom")]


def _unseen(delivered: DataFrame, log: DataFrame, domain: DataFrame) -> DataFrame:
    wanted = log.select("tp", "offset").join(domain, "tp").where("offset >= start and offset < stop")
    finished = delivered.where("state in (2, 3)").select("tp", "offset")
    return _counted(wanted.join(finished, on=["tp", "offset"], how="left_anti"), "unseen")


def _repeated(delivered: DataFrame) -> DataFrame:
    """Only offsets that occur again are looked at by stream: a distinct count of all would shuffle twice."""
    finished = delivered.where("state in (2, 3)").select(*STREAM, "offset")
    stream = fn.struct("who", "interval")
    streams = finished.groupBy("tp", "offset").agg(fn.size(fn.collect_set(stream)).alias("streams"))
    return _counted(streams.where("streams > 1"), "redelivery", fn.sum(col("streams") - 1))


def _order(delivered: DataFrame, log: DataFrame) -> Sequence[DataFrame]:
    before = Window.partitionBy(*STREAM).orderBy("ord").rowsBetween(Window.unboundedPreceding, -1)
    rows = delivered.where("interval >= 0").select(*STREAM, "ord", "offset")
    placed = rows.withColumn("highest", fn.max("offset").over(before))
    odd = placed.where("offset <= highest or offset > highest + 1").localCheckpoint()
    gaps = fn.broadcast(odd.where("offset > highest").select("tp", "highest", col("offset").alias("low")))
    inside = (log["tp"] == gaps["tp"]) & (log["offset"] > gaps["highest"]) & (log["offset"] < gaps["low"])
    return [_counted(odd.where("offset <= highest"), "rewind"), _counted(log.join(gaps, on=inside), "poll-skip")]


def _overlaps(owned: DataFrame) -> DataFrame:
    before = Window.partitionBy("tp").orderBy("n").rowsBetween(Window.unboundedPreceding, -1)
    late = owned.withColumn("running", fn.max("end_ns").over(before)).where("begin_ns < running").alias("late")
    pair = "early.tp = late.tp and early.who <> late.who and early.n < late.n and early.end_ns > late.begin_ns"
    return _counted(late.join(owned.alias("early"), on=fn.expr(pair)), "assignment-overlap")


def _regressions(accepted: DataFrame) -> DataFrame:
    before = fn.lag("offset").over(Window.partitionBy("tp").orderBy("n"))
    return _counted(accepted.withColumn("before", before).where("offset >= 0 and offset < before"), "commit-regression")
