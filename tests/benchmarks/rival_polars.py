"""The judge's core findings for Polars, on its streaming engine; the same two passes as for DuckDB (see there)."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "2")

import polars as pl
from polars import col
from rivals import Answer, Run, answer

ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)  # odd constants mix bits
BLOCK = ["tp", "block"]
STREAM = ["tp", "who", "interval"]


def judge(folder: Path) -> Answer:
    """The findings of one run."""
    run = Run.read(folder)
    delivered = pl.scan_parquet(run.delivered, include_file_paths="who").with_columns(col("who").cast(pl.Categorical))
    log, produced = pl.scan_parquet(run.log), pl.scan_parquet(run.produced).filter(outcome=0)
    owned, accepted, domain = (pl.from_arrow(table) for table in (run.owned, run.accepted, run.domain))
    domain = domain.with_columns(col("tp").cast(pl.Int32)).lazy()
    pieces, logged, acked = _digests(delivered, log, produced)
    return answer(
        [
            ("lost-write", _lost(acked, logged, produced, log, domain)),
            *_records(run, pieces, logged, delivered, log, domain).items(),
            *_order(pieces, delivered, log).items(),
            ("assignment-overlap", _overlaps(owned)),
            ("commit-regression", _regressions(accepted)),
        ]
    )


def _digest(*names: str) -> pl.Expr:
    """A number per row that mixes some columns; digests of many rows add up (and wrap)."""
    mixed = sum(
        (col(name).cast(pl.UInt64, wrap_numerical=True) * pl.lit(odd, pl.UInt64))
        for name, odd in zip(names, ODD, strict=False)
    )
    return (mixed ^ (mixed // (1 << 29))) * pl.lit(ODD[0], pl.UInt64)


def _digests(
    delivered: pl.LazyFrame, log: pl.LazyFrame, produced: pl.LazyFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    block = (col("offset") // 512).alias("block")
    content, sent = _digest("offset", "key", "writer", "seq"), _digest("offset", "writer", "seq")
    pieces = delivered.group_by("tp", "who", "interval", (col("offset") - col("ord")).alias("shift"), block).agg(
        pl.len().alias("n"),
        col("state").is_in([2, 3]).sum().alias("finished"),
        content.sum().alias("digest"),
        col("ord").min().alias("first_ord"),
        col("ord").max().alias("last_ord"),
        col("offset").min().alias("low"),
        col("offset").max().alias("high"),
    )
    logged = log.group_by("tp", block).agg(pl.len().alias("n"), content.sum().alias("digest"), sent.sum().alias("sent"))
    acked = produced.group_by("tp", block).agg(pl.len().alias("n"), sent.sum().alias("sent"))
    collect = partial(pl.LazyFrame.collect, engine="streaming")
    return collect(pieces), collect(logged), collect(acked)


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


def _records(
    run: Run,
    pieces: pl.DataFrame,
    logged: pl.DataFrame,
    delivered: pl.LazyFrame,
    log: pl.LazyFrame,
    domain: pl.LazyFrame,
) -> dict[str, int]:
    """What the records of dirty blocks show."""
    seen = pieces.group_by(BLOCK).agg(col("n").sum(), col("finished").sum(), col("digest").sum())
    logged = logged.with_columns(finished=col("n"))
    dirty = _dirty(seen, logged, ["n", "finished", "digest"], "full").collect().lazy()
    suspects = _in(delivered, dirty).select("tp", "offset", "who", "interval", "key", "writer", "seq", "state")
    wanted = _in(log, dirty).select("tp", "offset", "key", "writer", "seq")
    suspects, wanted = (frame.lazy() for frame in pl.collect_all([suspects, wanted], engine="streaming"))
    content = ["key", "writer", "seq"]
    strange = suspects.join(wanted, on=["tp", "offset", *content], how="anti").join(domain, on="tp")
    strange = strange.filter(col("offset") >= col("log_start")).collect().lazy()
    count, sent = _count(strange), 0
    if count:
        sends = pl.scan_parquet([*run.produced, *run.unacked]).join(strange, on=["tp", *content], how="semi")
        sent = _count(strange.join(sends, on=["tp", *content], how="semi"))
    finished = suspects.filter(col("state").is_in([2, 3]))
    missed = wanted.join(domain, on="tp").filter(col("offset") >= col("start"), col("offset") < col("stop"))
    streams = finished.unique(["tp", "offset", "who", "interval"]).group_by("tp", "offset").len()
    return {
        "phantom": count - sent,
        "delivered-then-lost": sent,
        "unseen": _count(missed.join(finished, on=["tp", "offset"], how="anti")),
        "redelivery": int(streams.select((col("len") - 1).sum()).collect().item() or 0),
    }


def _order(pieces: pl.DataFrame, delivered: pl.LazyFrame, log: pl.LazyFrame) -> dict[str, int]:
    """Islands that begin below, or not right after, what their stream had before."""
    bounds = (
        col("first_ord").min(),
        col("last_ord").max(),
        col("low").min(),
        col("high").max(),
    )
    islands = pieces.filter(col("interval") >= 0).group_by(*STREAM, "shift").agg(col("n").sum(), *bounds)
    broken = islands.filter(col("n") != col("last_ord") - col("first_ord") + 1).select(STREAM).unique()
    if len(broken):
        rows = delivered.join(broken.lazy(), on=STREAM, how="semi").select(*STREAM, "ord", "offset")
        rows = rows.collect(engine="streaming").sort(*STREAM, "ord")
        jump = (col("offset").diff() != 1) | (pl.struct(STREAM).rle_id().diff() != 0)
        split = rows.with_columns(shift=jump.fill_null(True).cum_sum().cast(pl.Int64)).group_by(*STREAM, "shift")
        exact = split.agg(
            pl.len().alias("n").cast(islands.schema["n"]),
            col("ord").min().alias("first_ord"),
            col("ord").max().alias("last_ord"),
            col("offset").min().alias("low"),
            col("offset").max().alias("high"),
        )
        islands = pl.concat([islands.join(broken, on=STREAM, how="anti"), exact])
    highest = col("high").cum_max().shift(1).over(STREAM, order_by="first_ord")
    placed = islands.with_columns(highest=highest)
    back = placed.filter(col("low") <= col("highest"))
    gaps = placed.filter(col("low") > col("highest") + 1)
    skipped = 0
    if len(gaps):
        inside = (col("offset") > col("highest")) & (col("offset") < col("low"))
        near = log.filter(pl.any_horizontal(col("offset").is_between(a, b) for a, b in _hulls(gaps)))
        skipped = _count(near.join(gaps.lazy(), on="tp").filter(inside))
    rewinds = back.select((pl.min_horizontal("high", "highest") - col("low") + 1).sum()).item()
    return {"rewind": int(rewinds or 0), "poll-skip": skipped}


def _hulls(gaps: pl.DataFrame) -> list[tuple[int, int]]:
    """Ranges of offsets that hold all gaps: no more than 64, so that the filter stays cheap."""
    edges = gaps.select((col("highest") + 1).alias("a"), (col("low") - 1).alias("b")).sort("a")
    step = -(-len(edges) // 64)
    return [(int(part["a"].min()), int(part["b"].max())) for part in edges.iter_slices(step)]


def _overlaps(owned: pl.DataFrame) -> int:
    running = col("end_ns").cum_max().shift(1).over("tp", order_by="n")
    late = owned.with_columns(running=running).filter(col("begin_ns") < col("running"))
    pairs = late.join(owned, on="tp", suffix="_early").filter(
        col("who") != col("who_early"),
        col("n_early") < col("n"),
        col("end_ns_early") > col("begin_ns"),
    )
    return len(pairs)


def _regressions(accepted: pl.DataFrame) -> int:
    before = col("offset").shift(1).over("tp", order_by="n")
    return len(accepted.filter((col("offset") >= 0) & (col("offset") < before)))
