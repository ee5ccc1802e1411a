"""Rules about commits in the coordinator's log: which commits it accepted, and which member wrote them.

Accepted commits are compared in the order of the log, never by time. The writer of a commit is known if the logged
requests of exactly one incarnation match it (``Tables.writer``).
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
    """``stale-offset-answer``: a broker returned a committed offset older than one that had been acknowledged.

    One detection for each stale answer and partition (``answers.stale``), whatever followed. Other rules report the
    consequences, also under this kind, with the kind that they would otherwise have as the cause.

    cause ``told a member``: an incarnation of the group received the answer; empty: another client did. members: the
    incarnation that received the answer, if it belongs to the group; offset: the returned offset; times: the
    acknowledgement of the commit, and the answer; excuse: a declared act before the answer.
    """
    for one in tables.stale.values():
        asker, tp, at_ns = one.answer.incarnation, one.answer.tp, one.answer.served.end_ns
        members, cause = ((asker,), REPORTED) if asker in tables.lives else ((), "")
        excuse, times = tables.declared(tp, at_ns), (one.acknowledged_ns, at_ns)
        yield Detection(KIND, tp, members, cause, excuse, one.answer.offset, *times)


def commit_regression(tables: Tables) -> Iterator[Detection]:
    """``commit-regression``, ``stale-offset-answer``: an accepted commit is below the one just before it in the
    coordinator's log.

    After a deletion the comparison starts anew. cause ``own retry``: the same incarnation wrote both commits and all
    later ones up to one that is not below the former, and no incarnation may have fetched one of the lower offsets in
    between (``_healed``). Otherwise cause ``seek``: the writer's program had moved its position to the offset or below
    it, and had not begun a higher commit since (``_sought``). members: the writer, then the writer of the former
    commit; empty if the writer is unknown. offset: the new one; times: when the commit was written. excuse: a declared
    act before it, or what had delayed its request (``_held_back``); for cause ``seek``, that the program is the user's
    own. If a stale answer had sent the writer back (``misled``), the kind is ``stale-offset-answer`` and the cause is
    ``commit-regression``.
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
    """Whether the writer of commit ``n - 1`` reached its offset again before any member may have fetched a lower one.

    No other member may have committed in between.
    """
    before, by = rows[n - 1], tables.writer(rows[n - 1])
    lower: set[int] = set()  # compared with the offsets in answers, as the times of answers are uncertain
    for commit in (rows[m] for m in range(n, len(rows))):
        if not by or tables.writer(commit) != by:
            return False
        if commit.offset >= before.offset:
            low = Window(rows[n].written.begin_ns, commit.written.end_ns)
            fetched = tables.fetched_by_tp.meeting(before.tp, low)
            return not any(reported.offset in lower and reported.incarnation in tables.lives for reported in fetched)
        lower.add(commit.offset)
    return False


def _sought(tables: Tables, now: OffsetCommit, by: str) -> bool:
    """Whether the program that wrote a commit had moved its position to the offset, or below it.

    Only the last such move before the commit was written counts, and only if its program has not begun a higher commit
    since. If the writer is unknown, the moves of every program count.
    """
    moves = tables.moves_by_tp.get(now.tp, [])
    before = moves[: bisect_right(moves, now.written.end_ns, key=lambda m: m.begin_ns)]
    last = next((m for m in reversed(before) if m.offset <= now.offset and by in ("", m.incarnation)), None)
    if last is None:
        return False
    since = Window(last.begin_ns, now.written.begin_ns)
    own = tables.commits_of.meeting((last.incarnation, now.tp), since)
    return not any(commit.offset > now.offset and commit.begin_ns > since.begin_ns for commit in own)


class _Asked:
    """Indexes of the commit requests, each in the order in which the brokers received the requests."""

    def __init__(self, requests: Sequence[Request]) -> None:
        """The indexes are built when they are first used: in most runs no commit goes back."""
        self._requests = requests

    @cached_property
    def received_ns(self) -> Mapping[tuple[str, str], Sequence[int]]:
        """The times at which brokers received commit requests, by (incarnation, connection)."""
        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for request in self._requests:
            found[request.incarnation, request.connection].append(request.begin_ns)
        return found

    @cached_property
    def _accepted(self) -> IntervalIndex[tuple[str, int, int], Request]:
        accepted = (r for r in self._requests if outcome(r.error) != "fail")
        return IntervalIndex(accepted, lambda r: (r.incarnation, r.tp, r.offset), lambda r: r.served)

    def behind(self, commit: OffsetCommit, by: str) -> Request | None:
        """The request of writer ``by`` that wrote an accepted commit: of all possible requests, the nearest in time."""
        possible = self._accepted.meeting((by, commit.tp, commit.offset), commit.written)
        return min(possible, key=lambda r: abs(r.begin_ns - commit.at_ns), default=None)


def _held_back(tables: Tables, asked: _Asked, before: OffsetCommit, now: OffsetCommit) -> str:
    """What delayed a commit request of a member until a newer request of the same member had overtaken it.

    Empty if nothing is known to have delayed it. A broker serves the requests of one connection in order. But when a
    client replaces a connection, a request that is still in flight on the old connection may arrive after requests on
    the new one. Kafka's requests have no sequence number by which a coordinator could detect this. So two conditions
    must hold:

    * the old connection had delivered its previous commit request before the new connection delivered its first one;
    * a fault or a stall of the host that hindered the member after that previous request began before the first
      request on the new connection.
    """
    by = tables.writer(now)
    late, newer = asked.behind(now, by), asked.behind(before, by)
    if not late or not newer or not late.connection:
        return ""
    old_ns, new_ns = asked.received_ns[by, late.connection], asked.received_ns[by, newer.connection][0]
    number = bisect_left(old_ns, late.begin_ns)
    last_ns = old_ns[number - 1] if number else FOREVER  # if both requests share a connection: not below new_ns
    since_ns, what = hindrance(tables, by, last_ns)
    return what if last_ns < new_ns and since_ns < new_ns else ""


def foreign_commit(tables: Tables) -> Iterator[Detection]:
    """``foreign-commit``, ``zombie-commit``: the coordinator accepted a commit of a member that is not the owner.

    By the order of the coordinator's log: the last assignment record before the commit assigned the partition to
    another incarnation than the commit's writer, and both are known. ``zombie-commit`` if the partition had been
    assigned to the writer before that record was certainly written (for black boxes: if an earlier record had assigned
    it to the writer), else ``foreign-commit``. members: the writer, the owner; offset: the committed offset; times:
    when the commit was written; excuse: a declared act before it.
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
    """``commit-beyond-end``: an accepted commit is above every record that is known to have existed.

    It is above the end of the log that the audit saw, and above the offsets of all records in the log, all sends and
    all deliveries. (A log that was truncated had a later end before.) members: the writer; offset: the committed
    offset; times: when the commit was written; excuse: a declared act before it.

    Args:
        reached: for each partition, the greatest offset of any record of the history, plus 1.
    """
    for tp, rows in tables.accepted_of.items():
        end = tables.log_end(tp)
        for commit in rows:
            if end >= 0 and commit.offset > max(end, reached.get(tp, 0)):
                excuse, at_ns = tables.declared(tp, commit.at_ns), commit.at_ns
                members = blamed(tables.writer(commit))
                yield Detection("commit-beyond-end", tp, members, "", excuse, commit.offset, at_ns, at_ns)


def commit_reported_wrongly(tables: Tables) -> Iterator[Detection]:
    """``silent-commit-failure``, ``acknowledged-commit-missing``: reported ok, but not committed.

    A commit was answered ok, but no accepted commit of its partition and offset may have been written between its start
    and its end. (For an ``untimed`` commit, the start of its incarnation counts.) A commit that was overtaken
    when its transaction ended counts as accepted: an administrator may reset offsets while a transaction is open; the
    offset of the transaction is then not in force, and its writer is not notified. The *request* of the commit is the
    last one of that incarnation for that partition and offset that brokers may have received in that time.

    * ``silent-commit-failure``: the request was certainly refused; cause: the error;
    * else ``acknowledged-commit-missing``, but only if log compaction cannot have removed the commit: an older commit,
      of any partition, that was superseded before the request (without a request: before the commit's start) is still
      in the coordinator's log, or the log has no commit of this partition at all. excuse: a declared act before the
      commit's start, or, for an act that recreated the partition, before the commit's end.

    members: the incarnation; offset: the committed offset; times: start and end of the commit.
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
        requests = asked.meeting((commit.incarnation, commit.tp, commit.offset), asking)
        last = next(iter([*requests][-1:]), None)
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
