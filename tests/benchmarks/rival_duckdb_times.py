"""What DuckDB asks about who worked on what when: screens over pieces and blocks, then records of those that are left.

``pieces``, ``blocks``, ``suspects`` and ``wanted`` are made by ``rival_duckdb``. A screen names blocks to be looked at;
none of them may leave one out in which there is something to find.
"""

from __future__ import annotations

# Blocks in which a record was begun before all below were finished. A piece is smooth when each of its records was
# begun after the one before it was done; several pieces of a block must follow each other as well.
EARLY = """
CREATE OR REPLACE TEMP TABLE smooth AS
    SELECT tp, block, min(begin_ns) AS begin_ns, max(done_ns) AS done_ns,
        bool_and(is_smooth AND (before IS NULL OR (low > before AND begin_ns >= done_before))) AS is_smooth
    FROM (
        SELECT *, coalesce(broken_at = first_ord, true) AS is_smooth, max(high) OVER lower AS before,
            max(done_ns) OVER lower AS done_before
        FROM pieces WINDOW lower AS (
            PARTITION BY tp, block ORDER BY low ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    ) GROUP BY ALL;
CREATE OR REPLACE TEMP TABLE early AS
    SELECT tp, block FROM (
        SELECT *, max(done_ns) OVER (
            PARTITION BY tp ORDER BY block ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS below_ns FROM smooth
    ) WHERE is_smooth IS NOT TRUE OR begin_ns < below_ns;
"""

# A commit may pass a block of which some was done later. In a clean and smooth block all below the last record that it
# passes were done before that one, so that this one is enough; nearly every commit ends in such a block.
AHEAD = """
CREATE OR REPLACE TEMP TABLE passed AS
    SELECT n, tp, low, high, begin_ns, unnest(generate_series(low >> 9, least(high - 1, highest) >> 9)) AS block
    FROM passes JOIN (SELECT tp, max(block) * 512 + 511 AS highest FROM logged GROUP BY tp) USING (tp);
CREATE OR REPLACE TEMP TABLE ahead AS
    SELECT passed.*, (tp, block) NOT IN (FROM dirty) AND coalesce(is_smooth, false) AS is_fine, high - 1 AS "offset"
    FROM passed JOIN logged USING (tp, block) LEFT JOIN smooth USING (tp, block)
    WHERE done_ns IS NULL OR done_ns > passed.begin_ns OR (tp, block) IN (FROM dirty);
CREATE OR REPLACE TEMP TABLE edges AS
    SELECT tp, "offset", done_ns FROM read_parquet($delivered)
    WHERE (tp, "offset") IN (SELECT (tp, "offset") FROM ahead WHERE is_fine AND "offset" >> 9 = block);
DELETE FROM ahead WHERE is_fine AND EXISTS (
    FROM edges AS e WHERE (e.tp, e."offset") = (ahead.tp, ahead."offset") AND e.done_ns <= ahead.begin_ns);
"""

STALE = """
CREATE OR REPLACE TEMP TABLE foreign_time AS
    SELECT s.tp, s.who, s.interval, g.begin_ns, g.end_ns FROM (
        SELECT tp, who, interval, min(begin_ns) AS begin_ns, max(last_begin_ns) AS end_ns FROM pieces GROUP BY ALL
    ) AS s JOIN given AS g ON s.tp = g.tp AND s.who <> g.who AND g.begin_ns <= s.end_ns AND s.begin_ns < g.end_ns;
CREATE OR REPLACE TEMP TABLE stale AS
    SELECT tp, block FROM pieces JOIN intervals USING (tp, who, interval) WHERE last_begin_ns > late_ns
    UNION SELECT p.tp, block FROM pieces AS p JOIN foreign_time AS f
        ON (p.tp, p.who, p.interval) = (f.tp, f.who, f.interval)
        AND f.begin_ns <= p.last_begin_ns AND p.begin_ns < f.end_ns;
"""

MET = """
CREATE OR REPLACE TEMP TABLE spans AS
    SELECT tp, who, interval, min(begin_ns) AS begin_ns, max(done_ns) AS end_ns FROM pieces GROUP BY ALL
    HAVING min(begin_ns) < max(done_ns);
CREATE OR REPLACE TEMP TABLE met AS
    SELECT DISTINCT p.tp, p.block FROM (
        SELECT *, max(end_ns) OVER (
            PARTITION BY tp ORDER BY begin_ns, end_ns, who, interval ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS running FROM spans
    ) AS late JOIN spans AS other ON other.tp = late.tp AND other.who <> late.who AND late.begin_ns < running
        AND other.begin_ns <= late.begin_ns AND other.end_ns > late.begin_ns
    JOIN pieces AS p ON p.tp = late.tp AND p.who IN (late.who, other.who)
        AND p.begin_ns < least(late.end_ns, other.end_ns) AND p.done_ns > late.begin_ns;
"""

MISPLACED = """
CREATE OR REPLACE TEMP TABLE misplaced AS
    SELECT DISTINCT p.tp, block FROM pieces AS p LEFT JOIN intervals AS i USING (tp, who, interval)
    WHERE i.begin_ns IS NULL OR p.first_ns < i.begin_ns;
"""

SCREENS = (EARLY, STALE, MET, MISPLACED)

EARLY_KEYS = """
CREATE OR REPLACE TEMP TABLE firsts AS
    SELECT tp, "offset", min(begin_ns) FILTER (begin_ns > 0) AS begin_ns, min(done_ns) FILTER (finished) AS done_ns
    FROM suspects WHERE (tp, "offset" >> 9) IN (FROM early) GROUP BY ALL;
CREATE OR REPLACE TEMP TABLE ceilings AS
    SELECT tp, block, max(done_ns) OVER (
        PARTITION BY tp ORDER BY block ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS below_ns FROM (
        SELECT tp, block, done_ns FROM smooth ANTI JOIN early USING (tp, block)
        UNION ALL SELECT tp, "offset" >> 9 AS block, max(done_ns) FROM firsts GROUP BY ALL
    );
CREATE OR REPLACE TEMP TABLE early_keys AS
    SELECT DISTINCT tp, key FROM suspects JOIN (
        SELECT tp, "offset" FROM (
            SELECT *, "offset" >> 9 AS block, max(done_ns) OVER (
                PARTITION BY tp, "offset" >> 9 ORDER BY "offset" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS running FROM firsts
        ) AS f JOIN ceilings USING (tp, block) WHERE begin_ns < greatest(running, below_ns)
    ) USING (tp, "offset");
"""

KEY_ORDER = """
SELECT count(*) FROM (
    SELECT begin_ns, max(done_ns) OVER (
        PARTITION BY tp, key ORDER BY "offset" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS latest FROM (
        SELECT tp, "offset", arg_min(key, (delivered_ns, filename, ord)) AS key,
            min(begin_ns) FILTER (begin_ns > 0) AS begin_ns, min(done_ns) FILTER (state IN (2, 3)) AS done_ns
        FROM read_parquet($delivered, filename = true) WHERE (tp, "offset") IN (
            SELECT (tp, "offset") FROM read_parquet($delivered) WHERE (tp, key) IN (FROM early_keys)
        ) GROUP BY tp, "offset"
    )
) WHERE begin_ns < latest
"""

COMMITTED_AHEAD = """
SELECT count(*) FROM ahead JOIN (
    SELECT w.tp, w."offset", w."offset" >> 9 AS block, s.done_ns FROM wanted AS w LEFT JOIN (
        SELECT tp, "offset", min(done_ns) AS done_ns FROM suspects WHERE finished GROUP BY ALL
    ) AS s USING (tp, "offset")
) AS w USING (tp, block) WHERE w."offset" >= low AND w."offset" < high AND (w.done_ns IS NULL OR w.done_ns > begin_ns)
"""

STALE_WORK = """
SELECT count(*) FILTER (late), count(*) FILTER (NOT late AND EXISTS (
    FROM given AS g WHERE g.tp = s.tp AND g.who <> s.who AND g.begin_ns <= s.begin_ns AND s.begin_ns < g.end_ns
)) FROM (
    SELECT s.*, s.begin_ns > i.late_ns AND NOT EXISTS (
        FROM intervals AS o WHERE (o.tp, o.who) = (s.tp, s.who) AND s.begin_ns BETWEEN o.begin_ns AND o.end_ns
    ) AS late FROM suspects AS s JOIN intervals AS i USING (tp, who, interval)
    WHERE s.begin_ns > 0 AND (s.tp, s."offset" >> 9) IN (FROM stale)
) AS s
"""

OVERLAPPED = """
WITH work AS (
    SELECT s.tp, s.who, s.ord, s."offset", coalesce(i.begin_ns, 0) AS since,
        greatest(s.begin_ns, f.begin_ns) AS begin_ns, least(s.done_ns, f.end_ns) AS end_ns
    FROM suspects AS s JOIN free AS f ON f.who = s.who AND s.begin_ns < f.end_ns AND s.done_ns > f.begin_ns
        LEFT JOIN intervals AS i ON (i.tp, i.who, i.interval) = (s.tp, s.who, s.interval)
    WHERE s.begin_ns > 0 AND s.done_ns > s.begin_ns AND (s.tp, s."offset" >> 9) IN (FROM met)
)
SELECT count(DISTINCT (s.tp, s.who, s.ord, s."offset", o.who)) FROM work AS s JOIN work AS o
    ON s.tp = o.tp AND s.who <> o.who AND s.begin_ns < o.end_ns AND o.begin_ns < s.end_ns
    AND (s.since, s.who) < (o.since, o.who)
"""

BEFORE_ASSIGNMENT = """
SELECT count(*) FROM suspects AS s JOIN intervals AS i USING (tp, who, interval) WHERE s.delivered_ns < i.begin_ns
"""

OUTSIDE = """
SELECT count(*) FROM suspects AS s ANTI JOIN intervals AS i USING (tp, who, interval) WHERE NOT EXISTS (
    FROM intervals AS o WHERE (o.tp, o.who) = (s.tp, s.who) AND s.delivered_ns BETWEEN o.begin_ns AND o.end_ns
)
"""
