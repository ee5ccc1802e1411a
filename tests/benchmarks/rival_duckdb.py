"""The judge's core findings in SQL for DuckDB, in two passes: digests of blocks first, then records of dirty blocks.

A window over all records must sort them, and a join of all records must hash them. Here all records are only grouped
by block of 512 offsets and by island (a stretch of one assignment interval in which ``offset - ord`` stays the same):
some 300 times fewer rows. Blocks with the same number of records and the same digest on both sides are clean; an
island has no hole when it has as many rows as its ``ord`` spans. Only what is not clean is read again, exactly.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
from rivals import Answer, Run, answer

THREADS = 2
MEMORY = "2.5GB"

DIGESTS = """
CREATE OR REPLACE TEMP TABLE pieces AS
    SELECT tp, filename AS who, interval, "offset" - ord AS shift, "offset" >> 9 AS block, count(*) AS n,
        count(*) FILTER (state IN (2, 3)) AS finished, bit_xor(hash("offset", key, writer, seq)) AS digest,
        min(ord) AS first_ord, max(ord) AS last_ord, min("offset") AS low, max("offset") AS high
    FROM read_parquet($delivered, filename = true) GROUP BY ALL;
CREATE OR REPLACE TEMP TABLE logged AS
    SELECT tp, "offset" >> 9 AS block, count(*) AS n, bit_xor(hash("offset", key, writer, seq)) AS digest,
        bit_xor(hash("offset", writer, seq)) AS sent
    FROM read_parquet($log) GROUP BY ALL;
CREATE OR REPLACE TEMP TABLE acked AS
    SELECT tp, "offset" >> 9 AS block, count(*) AS n, bit_xor(hash("offset", writer, seq)) AS sent
    FROM read_parquet($produced) WHERE outcome = 0 GROUP BY ALL;
CREATE OR REPLACE TEMP TABLE dirty_acked AS
    SELECT tp, block FROM acked LEFT JOIN logged USING (tp, block)
    WHERE acked.n IS DISTINCT FROM logged.n OR acked.sent IS DISTINCT FROM logged.sent;
CREATE OR REPLACE TEMP TABLE dirty AS
    SELECT tp, block FROM (
        SELECT tp, block, sum(n) AS n, sum(finished) AS finished, bit_xor(digest) AS digest FROM pieces GROUP BY ALL
    ) AS seen FULL JOIN logged USING (tp, block)
    WHERE seen.n IS DISTINCT FROM logged.n OR finished IS DISTINCT FROM logged.n
        OR seen.digest IS DISTINCT FROM logged.digest;
"""

RECORDS = """
CREATE OR REPLACE TEMP TABLE suspects AS
    SELECT tp, "offset", filename AS who, interval, key, writer, seq, state IN (2, 3) AS finished
    FROM read_parquet($delivered, filename = true) WHERE (tp, "offset" >> 9) IN (FROM dirty);
CREATE OR REPLACE TEMP TABLE wanted AS
    SELECT tp, "offset", key, writer, seq
    FROM read_parquet($log) WHERE (tp, "offset" >> 9) IN (FROM dirty);
CREATE OR REPLACE TEMP TABLE strange AS
    SELECT s.tp, s.key, s.writer, s.seq FROM suspects AS s JOIN domain USING (tp)
        ANTI JOIN wanted AS w ON (s.tp, s."offset", s.key, s.writer, s.seq) = (w.tp, w."offset", w.key, w.writer, w.seq)
    WHERE s."offset" >= log_start;
"""

LOST = """
SELECT count(*) FROM (
        SELECT tp, "offset", writer, seq FROM read_parquet($produced)
        WHERE outcome = 0 AND (tp, "offset" >> 9) IN (FROM dirty_acked)
    ) AS p JOIN domain USING (tp) ANTI JOIN read_parquet($log) AS l
        ON (p.tp, p."offset", p.writer, p.seq) = (l.tp, l."offset", l.writer, l.seq)
    WHERE p."offset" >= log_start
"""

SENT = """
SELECT count(*), count(*) FILTER (EXISTS (
    FROM read_parquet($sends) AS p WHERE (p.tp, p.key, p.writer, p.seq) = (s.tp, s.key, s.writer, s.seq)
)) FROM strange AS s
"""

UNSEEN = """
SELECT count(*) FROM wanted AS w JOIN domain USING (tp)
    ANTI JOIN (SELECT tp, "offset" FROM suspects WHERE finished) AS s ON (w.tp, w."offset") = (s.tp, s."offset")
    WHERE w."offset" >= start AND w."offset" < stop
"""

REPEATED = """
SELECT sum(streams - 1) FROM (
    SELECT count(DISTINCT (who, interval)) AS streams FROM suspects WHERE finished GROUP BY tp, "offset"
)
"""

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
            SELECT tp, filename AS who, interval, ord, "offset",
                ("offset" - lag("offset") OVER stream IS DISTINCT FROM 1)::int AS jump
            FROM read_parquet($delivered, filename = true) WHERE (tp, filename, interval) IN (FROM broken)
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


def judge(folder: Path) -> Answer:
    """The findings of one run."""
    run = Run.read(folder)
    files = {name: list(getattr(run, name)) for name in ("delivered", "produced", "unacked", "log")}
    files["sends"] = files["produced"] + files["unacked"]
    with duckdb.connect(config={"threads": THREADS, "memory_limit": MEMORY}) as db:

        def ask(query: str) -> int:
            """The last statement's number; the others only do something."""
            result = None
            for statement in db.extract_statements(query):
                result = db.execute(statement, {n: files[n] for n in statement.named_parameters}).fetchone()
            return int((result or (0,))[0] or 0)

        for name in ("domain", "owned", "accepted"):
            db.register(name, getattr(run, name))
        for query in (DIGESTS, RECORDS, ISLANDS):
            ask(query)
        if ask("SELECT count(*) FROM broken"):
            ask(SPLIT)
        ask(JUMPS)
        strange = ask("SELECT count(*) FROM strange")
        sent = 0
        if strange:
            strange, sent = db.execute(SENT, {"sends": files["sends"]}).fetchone() or (0, 0)
        return answer(
            [
                ("lost-write", ask(LOST) if ask("SELECT count(*) FROM dirty_acked") else 0),
                *(("delivered-then-lost", sent), ("phantom", strange - sent), ("unseen", ask(UNSEEN))),
                *(("redelivery", ask(REPEATED)), ("rewind", ask(REWINDS))),
                ("poll-skip", ask(SKIPS) if ask("SELECT count(*) FROM gaps") else 0),
                *(("assignment-overlap", ask(OVERLAPS)), ("commit-regression", ask(REGRESSIONS))),
            ]
        )
