"""What DuckDB asks about records and events in their order: along a stream of deliveries, a log, a partition's owners.

``pieces`` are made by ``rival_duckdb``.
"""

from __future__ import annotations

ISLANDS = """
CREATE OR REPLACE TEMP TABLE islands AS
    SELECT tp, who, interval, sum(n) AS n, min(first_ord) AS first_ord, max(last_ord) AS last_ord,
        min(low) AS low, max(high) AS high
    FROM pieces WHERE interval >= 0 GROUP BY tp, who, interval, shift;
CREATE OR REPLACE TEMP TABLE broken AS
    SELECT DISTINCT tp, who, interval FROM islands WHERE n <> last_ord - first_ord + 1;
"""

SPLIT = """
DELETE FROM islands WHERE (tp, who, interval) IN (FROM broken);
INSERT INTO islands
    SELECT tp, who, interval, count(*), min(ord), max(ord), min("offset"), max("offset") FROM (
        SELECT *, sum(jump) OVER (PARTITION BY tp, who, interval ORDER BY ord) AS island FROM (
            SELECT tp, parse_filename(filename, true) AS who, interval, ord, "offset",
                ("offset" - lag("offset") OVER stream IS DISTINCT FROM 1)::int AS jump
            FROM read_parquet($delivered, filename = true)
            WHERE (tp, parse_filename(filename, true), interval) IN (FROM broken)
            WINDOW stream AS (PARTITION BY tp, filename, interval ORDER BY ord)
        )
    ) GROUP BY tp, who, interval, island;
"""

JUMPS = """
CREATE OR REPLACE TEMP TABLE placed AS
    SELECT *, max(high) OVER (
        PARTITION BY tp, who, interval ORDER BY first_ord ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS highest FROM islands;
CREATE OR REPLACE TEMP TABLE gaps AS SELECT tp, highest, low FROM placed WHERE low > highest + 1;
"""

REWINDS = "SELECT sum(least(high, highest) - low + 1) FROM placed WHERE low <= highest"
SKIPS = """SELECT count(*) FROM read_parquet($log) AS l
    JOIN gaps ON l.tp = gaps.tp AND l."offset" > highest AND l."offset" < low"""

HOLES = """
SELECT sum(CASE WHEN gap > 0 THEN gap ELSE 1 END) FROM (
    SELECT ord - coalesce(lag(ord) OVER (PARTITION BY tp, filename ORDER BY ord), -1) - 1 AS gap
    FROM read_parquet($delivered, filename = true)
    WHERE (tp, parse_filename(filename, true)) IN (SELECT (tp, who) FROM pieces WHERE jumps > 0)
) WHERE gap <> 0
"""

# Where a run of one writer ends and the next one begins: between these its numbers ascend.
RUNS = """
CREATE OR REPLACE TEMP TABLE runs AS
    SELECT * FROM (
        SELECT tp, "offset", writer, seq, lag(tp) OVER () AS tp_before, lag(writer) OVER () AS writer_before,
            lag(seq) OVER () AS seq_before, lag("offset") OVER () AS offset_before
        FROM read_parquet($log)
    ) WHERE tp IS DISTINCT FROM tp_before OR writer <> writer_before OR seq <= seq_before OR "offset" <= offset_before;
CREATE OR REPLACE TEMP TABLE fallen AS
    SELECT DISTINCT tp, writer FROM (
        SELECT tp, writer, begins, seq, max(seq) OVER (
            PARTITION BY tp, writer ORDER BY place, begins DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS highest FROM (
            SELECT tp, writer, "offset" AS place, true AS begins, seq FROM runs
            UNION ALL SELECT tp_before, writer_before, "offset_before", false, seq_before FROM runs
                WHERE tp_before IS NOT NULL
        )
    ) WHERE begins AND writer >= 0 AND seq <= highest;
INSERT INTO fallen SELECT DISTINCT tp, writer FROM runs WHERE writer >= 0 AND (
    SELECT count(*) FILTER (tp IS DISTINCT FROM tp_before) > count(DISTINCT tp)
        OR coalesce(bool_or(tp = tp_before AND "offset" <= offset_before), false) FROM runs);
"""

LANDED = """
SELECT count(*) FILTER (times > 1), count(*) FILTER (times = 1 AND seq < highest) FROM (
    SELECT seq, row_number() OVER (PARTITION BY tp, writer, seq ORDER BY "offset") AS times, max(seq) OVER (
        PARTITION BY tp, writer ORDER BY "offset" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS highest FROM read_parquet($log) WHERE (tp, writer) IN (FROM fallen)
)
"""

OVERLAPS = """
SELECT count(*) FROM (
    SELECT *, max(end_ns) OVER (
        PARTITION BY tp ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS running FROM owned
) AS late JOIN owned AS early ON early.tp = late.tp AND early.who <> late.who AND late.begin_ns < running
    AND early.n < late.n AND early.end_ns > late.begin_ns
"""

REGRESSIONS = """
SELECT count(*) FROM (
    SELECT "offset", lag("offset") OVER (PARTITION BY tp ORDER BY n) AS before FROM accepted
) WHERE "offset" >= 0 AND "offset" < before
"""
