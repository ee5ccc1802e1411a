"""What Polars asks about records and events in their order; the same as DuckDB (see there)."""

from __future__ import annotations

import polars as pl
from polars import col

STREAM = ["tp", "who", "interval"]


def jumps(pieces: pl.DataFrame, delivered: pl.LazyFrame, log: pl.LazyFrame) -> dict[str, int]:
    """Islands that start below, or not right after, what their stream had before."""
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
        skipped = near.join(gaps.lazy(), on="tp").filter(inside).select(pl.len()).collect(engine="streaming").item()
    rewinds = back.select((pl.min_horizontal("high", "highest") - col("low") + 1).sum()).item()
    return {"rewind": int(rewinds or 0), "poll-skip": skipped}


def _hulls(gaps: pl.DataFrame) -> list[tuple[int, int]]:
    """Ranges of offsets that hold all gaps: no more than 64, so that the filter stays cheap."""
    edges = gaps.select((col("highest") + 1).alias("a"), (col("low") - 1).alias("b")).sort("a")
    step = -(-len(edges) // 64)
    return [(int(part["a"].min()), int(part["b"].max())) for part in edges.iter_slices(step)]


def holes(pieces: pl.DataFrame, delivered: pl.LazyFrame) -> int:
    """Numbers that are missing, or there twice, of those who have any."""
    broken = pieces.filter(col("jumps") > 0).select("tp", "who").unique()
    if not len(broken):
        return 0
    rows = delivered.join(broken.lazy(), on=["tp", "who"], how="semi").select("tp", "who", "ord").collect()
    gap = col("ord") - col("ord").shift(1, fill_value=-1).over("tp", "who", order_by="ord") - 1
    gaps = rows.with_columns(gap=gap).filter(col("gap") != 0)
    return int(gaps.select(pl.when(col("gap") > 0).then("gap").otherwise(1).sum()).item())


def landed(runs: pl.DataFrame, log: pl.LazyFrame) -> dict[str, int]:
    """Between two rows of ``runs`` the numbers of one writer ascend."""
    names = ["tp", "writer", "seq", "offset"]
    ends = runs.select(pl.col(f"{name}_before").alias(name) for name in names).drop_nulls().with_columns(begins=False)
    edges = pl.concat([runs.select(names).with_columns(begins=True), ends])
    edges = edges.sort("offset", "begins", descending=[False, True])
    highest = col("seq").cum_max().shift(1).over("tp", "writer")
    fallen = edges.with_columns(highest=highest).filter(col("begins"), col("seq") <= col("highest"))
    moved = (col("tp") != col("tp_before")).fill_null(True)
    scattered = runs.select(
        (moved.sum() > col("tp").n_unique()) | (~moved & (col("offset") <= col("offset_before"))).any()
    )
    fallen = (runs if len(runs) and scattered.item() else fallen).filter(col("writer") >= 0)
    if not len(fallen):
        return {}
    rows = log.join(fallen.lazy(), on=["tp", "writer"], how="semi").collect(engine="streaming").sort("offset")
    times_before = col("seq").cum_count().over("tp", "writer", "seq")
    rows = rows.with_columns(highest=highest, times=times_before).filter(col("seq") <= col("highest"))
    twice = len(rows.filter(col("times") > 1))
    return {"duplicate-write": twice, "nonmonotonic-send": len(rows) - twice}


def overlaps(owned: pl.DataFrame) -> int:
    running = col("end_ns").cum_max().shift(1).over("tp", order_by="n")
    late = owned.with_columns(running=running).filter(col("begin_ns") < col("running"))
    pairs = late.join(owned, on="tp", suffix="_early").filter(
        col("who") != col("who_early"),
        col("n_early") < col("n"),
        col("end_ns_early") > col("begin_ns"),
    )
    return len(pairs)


def regressions(accepted: pl.DataFrame) -> int:
    before = col("offset").shift(1).over("tp", order_by="n")
    return len(accepted.filter((col("offset") >= 0) & (col("offset") < before)))
