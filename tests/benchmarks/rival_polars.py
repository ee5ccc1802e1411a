"""The judge's findings about records for Polars, on its streaming engine; the two passes are DuckDB's (see there)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "2")

import polars as pl
import pyarrow as pa
import rival_polars_order as order
import rival_polars_times as times
from polars import col
from rivals import Answer, Run, answer

ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)  # odd constants mix bits
BLOCK = ["tp", "block"]
CONTENT = ["key", "writer", "seq"]
STREAM = ["tp", "who", "interval"]


def judge(folder: Path) -> Answer:
    """The findings of one run."""
    run = Run.read(folder)
    delivered = pl.scan_parquet(run.delivered, include_file_paths="who").with_columns(col("who").cast(pl.Categorical))
    log, produced = pl.scan_parquet(run.log), pl.scan_parquet(run.produced).filter(outcome=0)
    file_of = {Path(name).stem: name for name in run.delivered}
    small = times.Small(*(_as_in_files(table, file_of) for table in (run.intervals, run.given, run.free)))
    owned, accepted = pl.from_arrow(run.owned), pl.from_arrow(run.accepted)
    domain = _as_in_files(run.domain, file_of).lazy()
    pieces, logged, acked, runs = _digests(delivered, log, produced)
    blocks = times.smooth(pieces)
    dirty = _dirty_delivered(pieces, logged)
    early, stale, met = times.early(blocks), times.stale(pieces, small), times.met(pieces)
    misplaced = times.misplaced(pieces, small)
    passes = _as_in_files(run.passes(_firsts(pieces)), file_of)
    ahead = times.ahead(passes, logged, blocks, dirty, delivered)
    looked = pl.concat([dirty, early, stale, met, misplaced, ahead.select(BLOCK)]).unique().lazy()
    columns = ["ord", "finished", "delivered_ns", "begin_ns", "done_ns"]
    suspects = _in(delivered.with_columns(finished=col("state").is_in([2, 3])), looked)
    suspects = suspects.select(*BLOCK, "offset", "who", "interval", *CONTENT, *columns)
    wanted = _in(log, looked).select(*BLOCK, "offset", *CONTENT)
    suspects, wanted = pl.collect_all([suspects, wanted], engine="streaming")
    late, backlog = times.stale_work(stale, suspects, small)
    before, outside = times.misplaced_rows(misplaced, suspects, small)
    counts = {
        "lost-write": _lost(acked, logged, produced, log, domain),
        **_records(run, suspects.lazy(), wanted.lazy(), domain),
        **order.jumps(pieces, delivered, log),
        **order.landed(runs, log),
        "history-incomplete": order.holes(pieces, delivered) + before,
        "delivery-outside-assignment": outside,
        "work-after-reassignment": backlog,
        "processing-after-revocation": late,
        "processing-overlap": times.overlapped(met, suspects, small),
        "key-order": times.key_order(times.early_keys(blocks, early, suspects), delivered),
        "commit-ahead": times.committed_ahead(ahead, suspects, wanted),
        "assignment-overlap": order.overlaps(owned),
        "commit-regression": order.regressions(accepted),
    }
    return answer(counts.items())


def _as_in_files(table: pa.Table, file_of: dict[str, str]) -> pl.DataFrame:
    """A small table with the types of the files, and members as the files that they wrote."""
    types = {"tp": col("tp").cast(pl.Int32), "interval": col("interval").cast(pl.Int32)}
    types["who"] = col("who").replace(file_of).cast(pl.Categorical)
    return pl.from_arrow(table).with_columns([types[name] for name in types if name in table.column_names])


def _firsts(pieces: pl.DataFrame) -> Iterator[tuple[int, str, int, int, int]]:
    """The first delivery of each interval."""
    first = pieces.filter(col("interval") >= 0).sort("first_ord").group_by(STREAM).first()
    first = first.select(*STREAM, col("first_ord") + col("shift"), "first_ns")
    return ((tp, Path(who).stem, *rest) for tp, who, *rest in first.iter_rows())


def _digest(*names: str) -> pl.Expr:
    """A number per row that mixes some columns; digests of many rows add up (and wrap)."""
    mixed = sum(
        (col(name).cast(pl.UInt64, wrap_numerical=True) * pl.lit(odd, pl.UInt64))
        for name, odd in zip(names, ODD, strict=False)
    )
    return (mixed ^ (mixed // (1 << 29))) * pl.lit(ODD[0], pl.UInt64)


def _digests(
    delivered: pl.LazyFrame, log: pl.LazyFrame, produced: pl.LazyFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Pieces, blocks of the log and of acknowledged sends, and where the log goes on with another writer.

    What follows from neighbours in a file (was a record begun after the one before it was done?) is asked by shifting.
    """
    block = (col("offset") // 512).alias("block")
    content, sent = _digest("offset", *CONTENT), _digest("offset", "writer", "seq")
    before = {name: col(name).shift(1) for name in ("tp", "who", "interval", "ord", "offset", "seq", "writer")}
    goes_on = (col("tp") == before["tp"]) & (col("who") == before["who"])
    is_next = (goes_on & (col("ord") == before["ord"] + 1)).fill_null(False)
    same = (col("offset") == before["offset"] + 1) & (col("interval") == before["interval"])
    chained = is_next & same & (col("begin_ns") >= pl.max_horizontal("begin_ns", "done_ns").shift(1))
    rows = delivered.with_columns(
        broken=pl.when(~chained.fill_null(False)).then("ord"),
        jump=~is_next & (goes_on.fill_null(False) | (col("ord") != 0)),
        begun=pl.when(col("begin_ns") > 0).then("begin_ns"),
    )
    pieces = rows.group_by("tp", "who", "interval", (col("offset") - col("ord")).alias("shift"), block).agg(
        pl.len().alias("n"),
        col("state").is_in([2, 3]).sum().alias("finished"),
        content.sum().alias("digest"),
        col("ord").min().alias("first_ord"),
        col("ord").max().alias("last_ord"),
        col("offset").min().alias("low"),
        col("offset").max().alias("high"),
        col("broken").max().alias("broken_at"),
        col("jump").sum().alias("jumps"),
        col("delivered_ns").min().alias("first_ns"),
        col("begun").min().alias("begin_ns"),
        col("begin_ns").max().alias("last_begin_ns"),
        col("done_ns").max(),
    )
    logged = log.group_by("tp", block).agg(pl.len().alias("n"), content.sum().alias("digest"), sent.sum().alias("sent"))
    acked = produced.group_by("tp", block).agg(pl.len().alias("n"), sent.sum().alias("sent"))
    apart = (col("tp") != before["tp"]) | (col("writer") != before["writer"]) | (col("seq") <= before["seq"])
    apart |= col("offset") <= before["offset"]
    names = ["tp", "writer", "seq", "offset"]
    runs = log.select(*names, *(before[name].alias(f"{name}_before") for name in names), apart=apart)
    runs = runs.filter(col("apart").fill_null(True))
    return tuple(pl.collect_all([pieces, logged, acked, runs], engine="streaming"))


def _dirty_delivered(pieces: pl.DataFrame, logged: pl.DataFrame) -> pl.DataFrame:
    seen = pieces.group_by(BLOCK).agg(col("n").sum(), col("finished").sum(), col("digest").sum())
    logged = logged.with_columns(finished=col("n"))
    return _dirty(seen, logged, ["n", "finished", "digest"], "full").collect()


def _dirty(one: pl.DataFrame, other: pl.DataFrame, names: list[str], how: str) -> pl.LazyFrame:
    both = one.join(other, on=BLOCK, how=how, coalesce=True, suffix="_of_log")
    differ = [col(name).ne_missing(col(f"{name}_of_log")) for name in names]
    return both.filter(pl.any_horizontal(differ)).select(BLOCK).lazy()


def _in(frame: pl.LazyFrame, blocks: pl.LazyFrame) -> pl.LazyFrame:
    """The records of some blocks."""
    return frame.with_columns(block=col("offset") // 512).join(blocks, on=BLOCK, how="semi")


def _count(frame: pl.LazyFrame) -> int:
    return int(frame.select(pl.len()).collect(engine="streaming").item())


def _lost(
    acked: pl.DataFrame, logged: pl.DataFrame, produced: pl.LazyFrame, log: pl.LazyFrame, domain: pl.LazyFrame
) -> int:
    dirty = _dirty(acked, logged, ["n", "sent"], "left").collect().lazy()
    if not _count(dirty):
        return 0
    sends = _in(produced, dirty).join(domain, on="tp").filter(col("offset") >= col("log_start"))
    return _count(sends.join(_in(log, dirty), on=["tp", "offset", "writer", "seq"], how="anti"))


def _records(run: Run, suspects: pl.LazyFrame, wanted: pl.LazyFrame, domain: pl.LazyFrame) -> dict[str, int]:
    """What the records of blocks that are looked at show, beside the log and beside each other."""
    strange = suspects.join(wanted, on=["tp", "offset", *CONTENT], how="anti").join(domain, on="tp")
    strange = strange.filter(col("offset") >= col("log_start")).collect()
    sent = dict.fromkeys((None, False, True), 0)
    if len(strange):
        record = ["tp", *CONTENT]
        sends = pl.scan_parquet([*run.produced, *run.unacked]).join(strange.lazy(), on=record, how="semi")
        calls = sends.group_by(record).agg(aborted=(col("outcome") == 3).any()).collect(engine="streaming")
        sent |= dict(strange.join(calls, on=record, how="left")["aborted"].value_counts().iter_rows())
    finished = suspects.filter(col("finished"))
    missed = wanted.join(finished, on=["tp", "offset"], how="anti").join(domain, on="tp").collect()
    streams = finished.unique(["tp", "offset", "who", "interval"]).group_by("tp", "offset").len()
    again = suspects.filter(pl.len().over("tp", "offset") > 1).sort("delivered_ns", col("who").cast(pl.String), "ord")
    differs = pl.any_horizontal(col(name) != col(name).first().over("tp", "offset") for name in CONTENT)
    return {
        "phantom": sent[None],
        "delivered-then-lost": sent[False],
        "aborted-read": sent[True],
        "unseen": len(missed.filter(col("offset") >= col("start"), col("offset") < col("stop"))),
        "unconsumed": len(missed.filter(col("offset") >= col("left"))),
        "redelivery": int(streams.select((col("len") - 1).sum()).collect().item() or 0),
        "inconsistent-offsets": _count(again.filter(differs)),
    }
