"""What Polars asks about who worked on what when; the same screens and exact looks as DuckDB's (see there)."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl
from polars import col

BLOCK = ["tp", "block"]
STREAM = ["tp", "who", "interval"]


class Small(NamedTuple):
    """The small tables of ``rivals.Run`` by these names, with partitions and members as the files have them."""

    intervals: pl.DataFrame
    given: pl.DataFrame
    free: pl.DataFrame


def smooth(pieces: pl.DataFrame) -> pl.DataFrame:
    """Of each block from when to when it was worked on, and whether one record was begun after the other was done."""
    before = {name: col(name).cum_max().shift(1).over(BLOCK, order_by="low") for name in ("high", "done_ns")}
    placed = pieces.with_columns(high_before=before["high"], done_before=before["done_ns"])
    itself = col("broken_at").fill_null(col("first_ord")) == col("first_ord")
    after = (col("low") > col("high_before")) & (col("begin_ns") >= col("done_before"))
    is_smooth = (itself & (col("high_before").is_null() | after)).fill_null(False).all()
    return placed.group_by(BLOCK).agg(col("begin_ns").min(), col("done_ns").max(), is_smooth=is_smooth)


def early(blocks: pl.DataFrame) -> pl.DataFrame:
    """Blocks in which a record may have been begun before all below were finished."""
    below_ns = col("done_ns").cum_max().shift(1).over("tp", order_by="block")
    return blocks.filter(~col("is_smooth") | (col("begin_ns") < below_ns)).select(BLOCK)


def stale(pieces: pl.DataFrame, small: Small) -> pl.DataFrame:
    """Blocks that were worked on after they were given up, or away."""
    late = pieces.join(small.intervals, on=STREAM).filter(col("last_begin_ns") > col("late_ns"))
    spans = pieces.group_by(STREAM).agg(from_ns=col("begin_ns").min(), to_ns=col("last_begin_ns").max())
    given = small.given.rename({"who": "owner", "begin_ns": "since_ns"})
    foreign = spans.join(given, on="tp").filter(
        col("who") != col("owner"), col("since_ns") <= col("to_ns"), col("from_ns") < col("end_ns")
    )
    inside = (col("since_ns") <= col("last_begin_ns")) & (col("begin_ns") < col("end_ns"))
    away = pieces.join(foreign.select(*STREAM, "since_ns", "end_ns"), on=STREAM).filter(inside)
    return pl.concat([late.select(BLOCK), away.select(BLOCK)]).unique()


def met(pieces: pl.DataFrame) -> pl.DataFrame:
    """Blocks that were worked on while another incarnation worked on the partition."""
    spans = pieces.group_by(STREAM).agg(from_ns=col("begin_ns").min(), to_ns=col("done_ns").max())
    spans = spans.filter(col("from_ns") < col("to_ns")).sort("tp", "from_ns", "to_ns").with_row_index("n")
    running = col("to_ns").cum_max().shift(1).over("tp", order_by="n")
    late = spans.with_columns(running=running).filter(col("from_ns") < col("running"))
    pairs = late.join(spans, on="tp", suffix="_other").filter(
        col("who") != col("who_other"), col("n_other") < col("n"), col("to_ns_other") > col("from_ns")
    )
    windows = pairs.select("tp", "who", "who_other", "from_ns", until_ns=pl.min_horizontal("to_ns", "to_ns_other"))
    at_work = pieces.join(windows, on="tp", suffix="_late").filter(
        (col("who") == col("who_late")) | (col("who") == col("who_other")),
        col("begin_ns") < col("until_ns"),
        col("done_ns") > col("from_ns"),
    )
    return at_work.select(BLOCK).unique()


def misplaced(pieces: pl.DataFrame, small: Small) -> pl.DataFrame:
    """Blocks with deliveries before their interval, or of none."""
    own = small.intervals.select(*STREAM, since_ns="begin_ns")
    known = pieces.join(own, on=STREAM, how="left")
    return known.filter(col("since_ns").is_null() | (col("first_ns") < col("since_ns"))).select(BLOCK).unique()


def ahead(
    passes: pl.DataFrame, logged: pl.DataFrame, blocks: pl.DataFrame, dirty: pl.DataFrame, delivered: pl.LazyFrame
) -> pl.DataFrame:
    """Commits with the blocks below them that may not have been done.

    In a clean and smooth block all below the last record that a commit passes were done before that one, so that this
    one is enough; nearly every commit ends in such a block.
    """
    last = logged.group_by("tp").agg(last=col("block").max())
    until = pl.min_horizontal((col("high") - 1) // 512, "last") + 1
    cut = passes.join(last, on="tp").with_columns(block=pl.int_ranges(col("low") // 512, until)).explode("block")
    known = cut.join(logged.select(BLOCK), on=BLOCK, how="semi")
    known = known.join(blocks.select(*BLOCK, "done_ns", "is_smooth"), on=BLOCK, how="left")
    known = known.join(dirty.with_columns(dirty=True), on=BLOCK, how="left")
    known = known.filter(col("done_ns").is_null() | (col("done_ns") > col("begin_ns")) | col("dirty"))
    known = known.with_columns(offset=col("high") - 1)
    fine = col("is_smooth") & col("dirty").is_null() & (col("offset") // 512 == col("block"))
    edges = known.filter(fine).select("tp", "offset").unique().lazy()
    rows = delivered.select("tp", "offset", edge_ns="done_ns").join(edges, on=["tp", "offset"], how="semi")
    known = known.join(rows.collect(engine="streaming"), on=["tp", "offset"], how="left")
    return known.filter(~(fine & (col("edge_ns") <= col("begin_ns"))).fill_null(False))


def committed_ahead(ahead: pl.DataFrame, suspects: pl.DataFrame, wanted: pl.DataFrame) -> int:
    """Records below a commit that nobody had finished by then."""
    done = suspects.filter(col("finished")).group_by("tp", "offset").agg(done_ns=col("done_ns").min())
    records = wanted.select("tp", "offset", "block").join(done, on=["tp", "offset"], how="left")
    passed = ahead.select(*BLOCK, "low", "high", "begin_ns").join(records, on=BLOCK)
    undone = col("done_ns").is_null() | (col("done_ns") > col("begin_ns"))
    return len(passed.filter(col("offset") >= col("low"), col("offset") < col("high"), undone))


def early_keys(blocks: pl.DataFrame, early: pl.DataFrame, suspects: pl.DataFrame) -> pl.DataFrame:
    """The keys of records that were begun before all below were finished, by first starts and first finishes."""
    begun, done = col("begin_ns").filter(col("begin_ns") > 0).min(), col("done_ns").filter(col("finished")).min()
    firsts = suspects.join(early, on=BLOCK, how="semi").group_by("tp", "offset", "block")
    firsts = firsts.agg(begin_ns=begun, done_ns=done.fill_null(0))
    others = blocks.join(early, on=BLOCK, how="anti").select(*BLOCK, "done_ns")
    ceilings = pl.concat([others, firsts.group_by(BLOCK).agg(col("done_ns").max())])
    ceilings = ceilings.with_columns(below_ns=col("done_ns").cum_max().shift(1).over("tp", order_by="block"))
    running = col("done_ns").cum_max().shift(1).over(BLOCK, order_by="offset")
    placed = firsts.with_columns(running=running).join(ceilings.select(*BLOCK, "below_ns"), on=BLOCK)
    too_early = placed.filter(col("begin_ns") < pl.max_horizontal("running", "below_ns"))
    return suspects.join(too_early, on=["tp", "offset"], how="semi").select("tp", "key").unique()


def key_order(keys: pl.DataFrame, delivered: pl.LazyFrame) -> int:
    """Only records of these keys are read again."""
    if not len(keys):
        return 0
    near = delivered.join(keys.lazy(), on=["tp", "key"], how="semi").select("tp", "offset").unique()
    rows = delivered.join(near, on=["tp", "offset"], how="semi").collect(engine="streaming")
    begun, done = col("begin_ns").filter(col("begin_ns") > 0), col("done_ns").filter(col("state").is_in([2, 3]))
    offsets = rows.sort("delivered_ns", col("who").cast(pl.String), "ord").group_by("tp", "offset", maintain_order=True)
    offsets = offsets.agg(col("key").first(), begin_ns=begun.min(), done_ns=done.min().fill_null(0))
    latest = col("done_ns").cum_max().shift(1).over("tp", "key", order_by="offset")
    return len(offsets.with_columns(latest=latest).filter(col("begin_ns") < col("latest")))


def stale_work(stale: pl.DataFrame, suspects: pl.DataFrame, small: Small) -> tuple[int, int]:
    """How many records were begun after their interval was given up; of the others, while another one's."""
    rows = suspects.join(stale, on=BLOCK, how="semi").filter(col("begin_ns") > 0).with_row_index("row")
    rows = rows.join(small.intervals.select(*STREAM, "late_ns"), on=STREAM)
    own = small.intervals.select("tp", "who", from_ns="begin_ns", to_ns="end_ns")
    gone = rows.filter(col("begin_ns") > col("late_ns"))
    again = gone.join(own, on=["tp", "who"]).filter(col("begin_ns").is_between(col("from_ns"), col("to_ns")))
    late = gone.join(again, on="row", how="anti")
    given = small.given.select("tp", owner="who", from_ns="begin_ns", to_ns="end_ns")
    foreign = rows.join(late, on="row", how="anti").join(given, on="tp")
    during = (col("from_ns") <= col("begin_ns")) & (col("begin_ns") < col("to_ns"))
    return len(late), foreign.filter(col("who") != col("owner"), during)["row"].n_unique()


def overlapped(met: pl.DataFrame, suspects: pl.DataFrame, small: Small) -> int:
    """Records that were in work while another incarnation, assigned later, was at work on the partition."""
    rows = suspects.join(met, on=BLOCK, how="semi").filter(col("begin_ns") > 0, col("done_ns") > col("begin_ns"))
    free = small.free.rename({"begin_ns": "from_ns", "end_ns": "to_ns"})
    work = rows.with_row_index("row").join(free, on="who")
    work = work.join(small.intervals.select(*STREAM, since_ns="begin_ns"), on=STREAM, how="left").select(
        *("tp", "who", "row", col("since_ns").fill_null(0)),
        begin_ns=pl.max_horizontal("begin_ns", "from_ns"),
        end_ns=pl.min_horizontal("done_ns", "to_ns"),
    )
    work = work.filter(col("begin_ns") < col("end_ns")).with_columns(col("who").cast(pl.String))
    pairs = work.lazy().join_where(
        work.lazy(),
        col("begin_ns") < col("end_ns_other"),
        col("begin_ns_other") < col("end_ns"),
        col("tp") == col("tp_other"),
        suffix="_other",
    )
    since, other = col("since_ns"), col("since_ns_other")
    stale = (since < other) | ((since == other) & (col("who") < col("who_other")))
    pairs = pairs.filter(col("who") != col("who_other"), stale).select("row", "who_other").unique()
    return int(pairs.select(pl.len()).collect().item())


def misplaced_rows(misplaced: pl.DataFrame, suspects: pl.DataFrame, small: Small) -> tuple[int, int]:
    """How many deliveries came before their interval, and how many outside of all."""
    rows = suspects.join(misplaced, on=BLOCK, how="semi").with_row_index("row")
    own = small.intervals.select(*STREAM, since_ns="begin_ns")
    before = rows.join(own, on=STREAM).filter(col("delivered_ns") < col("since_ns"))
    unnamed = rows.join(own, on=STREAM, how="anti")
    spans = small.intervals.select("tp", "who", from_ns="begin_ns", to_ns="end_ns")
    held = unnamed.join(spans, on=["tp", "who"])
    held = held.filter(col("delivered_ns").is_between(col("from_ns"), col("to_ns")))
    return len(before), len(unnamed) - held["row"].n_unique()
