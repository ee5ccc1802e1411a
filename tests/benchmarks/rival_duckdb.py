"""The judge's findings about records in SQL for DuckDB, in two passes: digests of blocks first, then dirty blocks.

A window over all records must sort them, and a join of all records must hash them. Here all records are only grouped
by block of 512 offsets and by island (a stretch of one assignment interval in which ``offset - ord`` stays the same):
some 300 times fewer rows. Blocks with the same number of records and the same digest on both sides are clean; an
island has no hole when it has as many rows as its ``ord`` spans. What follows from neighbours in a file (was a record
begun after the one before it was done?) is asked by ``lag`` without any order, which DuckDB streams. Only what is not
clean is read again, exactly.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import rival_duckdb_order as order
import rival_duckdb_times as times
from rivals import Answer, Run, answer

THREADS = 2
MEMORY = "2.5GB"

# A stream of lags takes one thread; hence a stream for each. The file's own row number tells where a file begins.
NEIGHBOURS = """
    SELECT *, lag(tp) OVER () = tp AND file_row_number > 0 AS goes_on, lag(interval) OVER () AS interval_before,
        lag(ord) OVER () AS ord_before, lag("offset") OVER () AS offset_before,
        lag(greatest(begin_ns, done_ns)) OVER () AS ns_before
    FROM read_parquet($files_{}, filename = true, file_row_number = true)
"""

DIGESTS = f"""
CREATE OR REPLACE TEMP TABLE pieces AS
    SELECT tp, parse_filename(filename, true) AS who, interval, "offset" - ord AS shift, "offset" >> 9 AS block,
        count(*) AS n, count(*) FILTER (state IN (2, 3)) AS finished,
        bit_xor(hash("offset", key, writer, seq)) AS digest,
        min(ord) AS first_ord, max(ord) AS last_ord, min("offset") AS low, max("offset") AS high,
        max(ord) FILTER (NOT coalesce(
            goes_on AND ord = ord_before + 1 AND "offset" = offset_before + 1 AND interval = interval_before
            AND begin_ns >= ns_before, false)) AS broken_at,
        count(*) FILTER (NOT CASE WHEN goes_on THEN ord = ord_before + 1 ELSE ord = 0 END) AS jumps,
        min(delivered_ns) AS first_ns, min(begin_ns) FILTER (begin_ns > 0) AS begin_ns,
        max(begin_ns) AS last_begin_ns, max(done_ns) AS done_ns
    FROM ({" UNION ALL ".join(NEIGHBOURS.format(n) for n in range(THREADS))})
    GROUP BY tp, filename, interval, shift, block;
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

FIRSTS = """
SELECT tp, who, interval, min_by(first_ord + shift, first_ord), min_by(first_ns, first_ord) FROM pieces
    WHERE interval >= 0 GROUP BY ALL
"""

RECORDS = """
CREATE OR REPLACE TEMP TABLE looked AS
    FROM dirty UNION FROM early UNION FROM stale UNION FROM met UNION FROM misplaced
    UNION SELECT tp, block FROM ahead;
CREATE OR REPLACE TEMP TABLE suspects AS
    SELECT tp, "offset", parse_filename(filename, true) AS who, interval, key, writer, seq, ord,
        state IN (2, 3) AS finished, delivered_ns, begin_ns, done_ns
    FROM read_parquet($delivered, filename = true) WHERE (tp, "offset" >> 9) IN (FROM looked);
CREATE OR REPLACE TEMP TABLE wanted AS
    SELECT tp, "offset", key, writer, seq
    FROM read_parquet($log) WHERE (tp, "offset" >> 9) IN (FROM looked);
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
SELECT count(*) FILTER (aborted IS NULL), count(*) FILTER (NOT aborted), count(*) FILTER (aborted)
FROM strange LEFT JOIN (
    SELECT tp, key, writer, seq, bool_or(outcome = 3) AS aborted
    FROM read_parquet($sends) SEMI JOIN strange USING (tp, key, writer, seq) GROUP BY ALL
) USING (tp, key, writer, seq)
"""

UNSEEN = """
SELECT count(*) FILTER (w."offset" >= start AND w."offset" < stop), count(*) FILTER (w."offset" >= "left")
    FROM wanted AS w JOIN domain USING (tp)
    ANTI JOIN (SELECT tp, "offset" FROM suspects WHERE finished) AS s ON (w.tp, w."offset") = (s.tp, s."offset")
"""

REPEATED = """
SELECT sum(streams - 1) FROM (
    SELECT count(DISTINCT (who, interval)) AS streams FROM suspects WHERE finished GROUP BY tp, "offset"
)
"""

INCONSISTENT = """
WITH again AS (FROM suspects SEMI JOIN (
    SELECT tp, "offset" FROM suspects GROUP BY ALL HAVING count(DISTINCT (key, writer, seq)) > 1
) USING (tp, "offset"))
SELECT count(*) FROM (
    SELECT row(key, writer, seq) <> first_value(row(key, writer, seq)) OVER (
        PARTITION BY tp, "offset" ORDER BY delivered_ns, who, ord
    ) AS differs FROM again
) WHERE differs
"""


def judge(folder: Path) -> Answer:
    """The findings of one run."""
    run = Run.read(folder)
    files = {name: list(getattr(run, name)) for name in ("delivered", "produced", "unacked", "log")}
    files["sends"] = files["produced"] + files["unacked"]
    by_size = sorted(run.delivered, key=lambda name: Path(name).stat().st_size)
    files |= {f"files_{n}": by_size[n::THREADS] or by_size[:1] for n in range(THREADS)}
    with duckdb.connect(config={"threads": THREADS, "memory_limit": MEMORY}) as db:

        def ask(query: str, of: str = "", width: int = 1) -> tuple[int, ...]:
            """The last statement's numbers; the others only do. So many zeros if the table ``of`` is empty."""
            result = None
            if of and not ask(f"SELECT count(*) FROM {of}")[0]:
                return (0,) * width
            for statement in db.extract_statements(query):
                result = db.execute(statement, {n: files[n] for n in statement.named_parameters}).fetchone()
            return tuple(int(number or 0) for number in result or ())

        for name in ("domain", "owned", "accepted", "intervals", "given", "free"):
            db.register(name, getattr(run, name))
        for query in (DIGESTS, *times.SCREENS):
            ask(query)
        db.register("passes", run.passes(db.execute(FIRSTS).fetchall()))
        for query in (times.AHEAD, RECORDS, times.EARLY_KEYS, order.ISLANDS, order.RUNS):
            ask(query)
        ask(order.SPLIT, "broken")
        ask(order.JUMPS)
        phantom, lost, aborted = ask(SENT, "strange", 3)
        unseen, unconsumed = ask(UNSEEN)
        twice, below = ask(order.LANDED, "fallen", 2)
        late, backlog = ask(times.STALE_WORK, "stale", 2)
        counts = {
            "phantom": phantom,
            "delivered-then-lost": lost,
            "aborted-read": aborted,
            "lost-write": ask(LOST, "dirty_acked")[0],
            "unseen": unseen,
            "unconsumed": unconsumed,
            "redelivery": ask(REPEATED)[0],
            "rewind": ask(order.REWINDS)[0],
            "poll-skip": ask(order.SKIPS, "gaps")[0],
            "duplicate-write": twice,
            "nonmonotonic-send": below,
            "inconsistent-offsets": ask(INCONSISTENT)[0],
            "processing-after-revocation": late,
            "work-after-reassignment": backlog,
            "history-incomplete": ask(order.HOLES)[0] + ask(times.BEFORE_ASSIGNMENT, "misplaced")[0],
            "delivery-outside-assignment": ask(times.OUTSIDE, "misplaced")[0],
            "processing-overlap": ask(times.OVERLAPPED, "met")[0],
            "key-order": ask(times.KEY_ORDER, "early_keys")[0],
            "commit-ahead": ask(times.COMMITTED_AHEAD, "ahead")[0],
            "assignment-overlap": ask(order.OVERLAPS)[0],
            "commit-regression": ask(order.REGRESSIONS)[0],
        }
        return answer(counts.items())
