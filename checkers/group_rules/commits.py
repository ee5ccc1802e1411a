"""Rules about commits by the coordinator's log: what it took for done, and from whom.

Accepted commits are taken in the order of the log, never by time. Who wrote one is known where the logged requests of
exactly one incarnation fit (``Tables.writers``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.answers import KIND, REPORTED
from fencepost.checkers.tables.commits import hindrance
from fencepost.checkers.tables.interval_index import IntervalIndex
from fencepost.checkers.tables.requests import Request
from fencepost.checkers.tables.rows import FOREVER, Commit, OffsetCommit, Window
from fencepost.checkers.tables.starts import misled
from fencepost_member.kafka_errors import outcome

if TYPE_CHECKING:
    from fencepost.checkers.group_rules.rule import Rule


def stale_answer(tables: Tables) -> Iterator[Detection]:
    """``stale-offset-answer``: brokers told a committed offset that was older than one acknowledged before.

    One sighting for each stale answer and partition (``answers.stale``), whatever followed; what did is told by other
    rules, under this kind, too, with the kind that it would have been as its cause. cause ``told a member``: an
    incarnation of the group had asked, and else nobody of the group. members: who had asked, if it is one of the group;
    offset: what was told; times: when the commit was acknowledged, and the answer; excuse: a declared act before that.
    """
    for one in tables.stale.values():
        asker, tp, at_ns = one.answer.incarnation, one.answer.tp, one.answer.served.end_ns
        members, cause = ((asker,), REPORTED) if asker in tables.lives else ((), "")
        excuse, times = tables.declared(tp, at_ns), (one.acknowledged_ns, at_ns)
        yield Detection(KIND, tp, members, cause, excuse, one.answer.offset, *times)


def commit_regression(tables: Tables) -> Iterator[Detection]:
    """``commit-regression``, ``stale-offset-answer``: an accepted commit is below the one just before it in the
    coordinator's log.

    A deletion resets the baseline. cause ``own retry``: one incarnation wrote both and all up to one that is not below
    the former, and no incarnation may have been told one of these lower offsets meanwhile; else ``seek``: its writer's
    program had moved its position to it or below it, and has not asked for a higher one since (``_sought``). members:
    its writer, then the writer of the one before (nobody, where its writer is not known); offset: the new one; times:
    when it was written; excuse: a declared act before it, or what had held its request back (``_held_back``); else, of
    cause ``seek``, that it is the user's own program. Where a stale answer had sent its writer back (``misled``), the
    kind is ``stale-offset-answer``, cause ``commit-regression``.
    """
    asked = _Asked(tables.asked_commits)
    for tp, rows in tables.accepted_of.items():
        for n, (before, now) in enumerate(pairwise(rows), 1):
            if 0 <= now.offset < before.offset:
                by, former = tables.writer(now), tables.writer(before)
                held_back = _held_back(tables, asked, before, now) if by and by == former else ""
                members, act = blamed(by, former) if by else (), tables.declared(tp, now.at_ns) or held_back
                kind, (cause, excuse) = "commit-regression", tables.by_seek(_sought(tables, now, by), act)
                if misled(tables, by, tp, now.offset, now.written.end_ns):
                    kind, cause, excuse = KIND, kind, act
                elif _healed(tables, rows, n):
                    cause, excuse = "own retry", act
                yield Detection(kind, tp, members, cause, excuse, now.offset, now.at_ns, now.at_ns)


def _healed(tables: Tables, rows: Sequence[OffsetCommit], n: int) -> bool:
    """Whether the writer of the commit before number ``n`` came back to it ere a member may have been told less."""
    before, by = rows[n - 1], tables.writer(rows[n - 1])
    less: set[int] = set()  # when an answer was given is not known well; what it said is
    for commit in (rows[m] for m in range(n, len(rows))):
        if not by or tables.writer(commit) != by:
            return False
        if commit.offset >= before.offset:
            low = Window(rows[n].written.begin_ns, commit.written.end_ns)
            fetched = tables.fetched_by_tp.meeting(before.tp, low)
            return not any(reported.offset in less and reported.incarnation in tables.lives for reported in fetched)
        less.add(commit.offset)
    return False


def _sought(tables: Tables, now: OffsetCommit, by: str) -> bool:
    """Whether the program that wrote a commit (any, where nobody knows which one) had moved its position there, or to
    below it, and had not begun a commit above it since: the last such move by then counts."""
    moves = tables.moves_by_tp.get(now.tp, [])
    before = moves[: bisect_right(moves, now.written.end_ns, key=lambda m: m.begin_ns)]
    last = next((m for m in reversed(before) if m.offset <= now.offset and by in ("", m.incarnation)), None)
    if last is None:
        return False
    since = Window(last.begin_ns, now.written.begin_ns)
    own = tables.commits_of.meeting((last.incarnation, now.tp), since)
    return not any(commit.offset > now.offset and commit.begin_ns > since.begin_ns for commit in own)


class _Asked:
    """The requests to commit, by what is asked of them; each time in the order in which brokers received them."""

    def __init__(self, requests: Sequence[Request]) -> None:
        """Nothing is looked up yet: most runs have no commit that went back."""
        self._requests = requests

    @cached_property
    def brought_ns(self) -> Mapping[tuple[str, str], Sequence[int]]:
        """When each connection of an incarnation brought one."""
        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for request in self._requests:
            found[request.incarnation, request.connection].append(request.begin_ns)
        return found

    @cached_property
    def _assigned(self) -> IntervalIndex[tuple[str, int, int], Request]:
        taken = (r for r in self._requests if outcome(r.error) != "fail")
        return IntervalIndex(taken, lambda r: (r.incarnation, r.tp, r.offset), lambda r: r.served)

    def behind(self, commit: OffsetCommit, by: str) -> Request | None:
        """The request of its writer that an accepted commit came of: of those that may have written it the nearest."""
        those = self._assigned.meeting((by, commit.tp, commit.offset), commit.written)
        return min(those, key=lambda r: abs(r.begin_ns - commit.at_ns), default=None)


def _held_back(tables: Tables, asked: _Asked, before: OffsetCommit, now: OffsetCommit) -> str:
    """What kept a request of a member from the coordinator until another one had overtaken it; empty: nothing did.

    Requests of one connection are served in their order. What a connection still holds when its client gives it up for
    another one arrives all the same, once the network lets it, behind what the other one brought; Kafka numbers no
    requests that the coordinator could tell it by. So the request came by a connection that had brought others before
    the newer one brought its first, and none since then; and something had begun to hinder the member in between.
    """
    by = tables.writer(now)
    late, newer = asked.behind(now, by), asked.behind(before, by)
    if not late or not newer or not late.connection:
        return ""
    brought_ns, anew_ns = asked.brought_ns[by, late.connection], asked.brought_ns[by, newer.connection][0]
    before_it = bisect_left(brought_ns, late.begin_ns)
    last_ns = brought_ns[before_it - 1] if before_it else FOREVER  # by one connection alone, it is not before the first
    since_ns, what = hindrance(tables, by, last_ns)
    return what if last_ns < anew_ns and since_ns < anew_ns else ""


def foreign_commit(tables: Tables) -> Iterator[Detection]:
    """``foreign-commit``, ``zombie-commit``: accepted, though the coordinator had given the partition to another one.

    Judged by the order of the coordinator's log: its last assignment record before the commit gave the partition to an
    incarnation (known) that is not the commit's writer (known). ``zombie-commit`` when the writer had been assigned the
    partition before that record was certainly written (of black boxes: when an earlier record had given it to the
    writer), else ``foreign-commit``. members: the writer, the owner; offset: the committed one; times: when it was
    written; excuse: a declared act before it.
    """
    for tp, rows in tables.accepted_of.items():
        given = tables.given_of.get(tp, [])
        for commit in rows:
            by, last = tables.writer(commit), bisect_left(given, commit.order, key=lambda g: g.order) - 1
            if not by or last < 0 or given[last].incarnation in ("", by):
                continue
            owner = given[last]
            held = tables.intervals_of.get((by, tp), [])[:1]
            was_owner = any(i.assigned_begin_ns <= owner.at_ns + owner.uncertainty_ns for i in held)
            was_owner = was_owner or (tables.black_box and any(g.incarnation == by for g in given[:last]))
            kind, members = "zombie-commit" if was_owner else "foreign-commit", blamed(by, owner.incarnation)
            excuse, at_ns = tables.declared(tp, commit.at_ns), commit.at_ns
            yield Detection(kind, tp, members, "", excuse, commit.offset, at_ns, at_ns)


def commit_above_end(tables: Tables, reached: Mapping[int, int]) -> Iterator[Detection]:
    """``commit-beyond-end``: an accepted commit is above any record that there ever was, as far as anybody knows.

    That is: above the end of the log that the audit saw, and above every offset that a record of the log, a send or a
    delivery has (a log that lost its tail had a later end). members: the writer; offset: the committed one; times: when
    it was written; excuse: a declared act before it.

    Args:
        reached: by partition, the offset after the greatest one that any record of the history has.
    """
    for tp, rows in tables.accepted_of.items():
        end = tables.log_end(tp)
        for commit in rows:
            if end >= 0 and commit.offset > max(end, reached.get(tp, 0)):
                excuse, at_ns = tables.declared(tp, commit.at_ns), commit.at_ns
                members = blamed(tables.writer(commit))
                yield Detection("commit-beyond-end", tp, members, "", excuse, commit.offset, at_ns, at_ns)


def commit_reported_wrongly(tables: Tables) -> Iterator[Detection]:
    """``silent-commit-failure``, ``acknowledged-commit-missing``: the client said ok, and the coordinator did not.

    For each commit answered ok of which no accepted commit of that partition and offset may have been written between
    its begin and its end, nor one that was overtaken when its transaction ended (an administrator may reset offsets
    while a transaction is open: what it had written then is not in force, and its writer is not told). (Of one that is
    ``untimed`` the start of its incarnation stands for the begin.) Its *request* is the last one of that
    incarnation for that partition and offset that the brokers may have received in that time.

    * ``silent-commit-failure``: the request was certainly refused; cause: the error;
    * else ``acknowledged-commit-missing``, unless a later commit may have let the coordinator's log be cleaned of it:
      an older commit that was superseded before the request (without one: before the commit's begin) is still there,
      of whatever partition, or there is none of this partition at all; excuse: a declared act before its begin;
      of one that deleted the partition and made it again, before its end.

    members: the incarnation; offset: the committed one; times: begin and end of the commit.
    """
    asked = IntervalIndex(tables.asked_commits, lambda r: (r.incarnation, r.tp, r.offset), lambda r: r.received)
    accepted = IntervalIndex((*tables.accepted, *tables.overtaken), lambda a: (a.tp, a.offset), lambda a: a.written)
    superseded = (rows[1].written.end_ns for rows in tables.accepted_of.values() if len(rows) > 1)
    whole_ns = min(superseded, default=FOREVER)
    for commit in tables.commits:
        asking = Window(_begin_ns(tables, commit), commit.end_ns)
        written = accepted.meeting((commit.tp, commit.offset), asking)
        if commit.outcome != "ok" or commit.offset < 0 or any(True for _ in written):
            continue
        those = asked.meeting((commit.incarnation, commit.tp, commit.offset), asking)
        last = next(iter([*those][-1:]), None)
        place, times = (commit.tp, (commit.incarnation,)), (commit.begin_ns, commit.end_ns)
        from_ns = max(asking.begin_ns, last.received.begin_ns if last else 0)
        if last and outcome(last.error) == "fail":
            yield Detection("silent-commit-failure", *place, last.error, "", commit.offset, *times)
        elif from_ns >= whole_ns or commit.tp not in tables.accepted_of:
            gone = commit.tp in tables.partitions and tables.partitions[commit.tp].gone
            late = tables.declared(commit.tp, commit.end_ns) if gone else tables.recreated(commit.tp, commit.end_ns)
            excuse = tables.declared(commit.tp, commit.begin_ns) or late
            yield Detection("acknowledged-commit-missing", *place, "", excuse, commit.offset, *times)


def _begin_ns(tables: Tables, commit: Commit) -> int:
    if not commit.untimed:
        return commit.begin_ns
    life = tables.lives.get(commit.incarnation)
    return life.started_ns if life else 0


RULES: dict[Rule, tuple[str, ...]] = {
    stale_answer: ("stale-offset-answer",),
    commit_regression: ("commit-regression", "stale-offset-answer"),
    foreign_commit: ("foreign-commit", "zombie-commit"),
    commit_reported_wrongly: ("silent-commit-failure", "acknowledged-commit-missing"),
}
