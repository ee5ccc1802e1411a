"""Rules about what rebalances deal out, by the coordinator's log. Asked only where it is promised: others chose an
assignor of which they know that it deals otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from fencepost.checkers.sightings import Sighting
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, NS, Window

if TYPE_CHECKING:
    from fencepost.checkers.coordination import Rule

PROMISE = "rebalances"
REST_NS = 5 * NS  # a cooperative rebalance has a second round, and members of the consumer protocol give up one by one


class Rest(NamedTuple):
    """A time in which the group rested after a round: no partition changed hands, and nobody asked to join.

    Attributes:
        number: of the round, in the coordinator's log.
        owners: who had each partition, by incarnation.
    """

    number: int
    window: Window
    members: frozenset[str]
    owners: Mapping[int, str]


def rests(tables: Tables) -> list[Rest]:
    """Those of at least 5 s; what comes after the first member left because the run was over is none."""
    calm_ns = tables.calm.end_ns or FOREVER
    begins = (r.begin_ns - r.uncertainty_ns for r in tables.rounds[1:])
    found, owners, given = list[Rest](), dict[int, str](), iter(sorted(tables.given, key=lambda g: g.order))
    ahead = next(given, None)
    for number, (one, begin_ns) in enumerate(zip(tables.rounds, chain(begins, [FOREVER]), strict=False)):
        end_ns, since_ns = min(begin_ns, calm_ns), one.end_ns + one.uncertainty_ns
        while ahead is not None and ahead.at_ns - ahead.uncertainty_ns < end_ns:
            owners[ahead.tp] = ahead.incarnation or ahead.member_id
            since_ns = max(since_ns, ahead.at_ns + ahead.uncertainty_ns)
            ahead = next(given, None)
        if end_ns - since_ns >= REST_NS and end_ns < FOREVER:
            has = {tp: owner for tp, owner in owners.items() if owner}
            found.append(Rest(number, Window(since_ns, end_ns), frozenset(one.members), has))
    return found


def unbalanced(tables: Tables) -> Iterator[Sighting]:
    """``unbalanced``: at rest, a member of the last round has at least two partitions more than another one.

    One sighting for each such rest. members: who has most, who has least; cause: the two numbers; times: the rest.
    excuse ``subscriptions``: a member had changed what it subscribes to by then.
    """
    for rest in rests(tables) if _promised(tables) else ():
        counts = Counter({**dict.fromkeys(rest.members, 0), **Counter(rest.owners.values())})
        ranked = sorted(counts, key=lambda name: (-counts[name], name))
        if len(ranked) > 1 and counts[ranked[0]] - counts[ranked[-1]] > 1:
            cause = f"{counts[ranked[0]]} and {counts[ranked[-1]]}"
            excuse = _subscriptions(tables, rest.window.end_ns)
            yield Sighting("unbalanced", -1, (ranked[0], ranked[-1]), cause, excuse, -1, *rest.window)


def not_sticky(tables: Tables) -> Iterator[Sighting]:
    """``not-sticky``: more partitions were taken from members that stayed than their new shares ask for.

    Of two rests after each other, if all rounds between them have the same members: those of the first one that are
    among them stay. Their new shares are even, the greater ones for who had most; what each had beyond its share must
    be taken from it, and nothing else.

    members: of whom partitions were taken; cause: how many, and how many had to be; times: from the end of the first
    rest to the begin of the other. excuse as of ``unbalanced``.
    """
    for before, after in pairwise(rests(tables)) if _promised(tables) else ():
        between = tables.rounds[before.number + 1 : after.number + 1]
        if any(frozenset(one.members) != after.members for one in between):
            continue
        had = Counter(owner for owner in before.owners.values() if owner in after.members)
        taken = [o for tp, o in before.owners.items() if o in after.members and after.owners.get(tp) != o]
        share, greater = divmod(len(after.owners), len(after.members))
        must = sum(max(0, count - share - (n < greater)) for n, (_, count) in enumerate(had.most_common()))
        if len(taken) > must:
            cause, excuse = f"{len(taken)} instead of {must}", _subscriptions(tables, after.window.begin_ns)
            times = (before.window.end_ns, after.window.begin_ns)
            yield Sighting("not-sticky", -1, tuple(sorted({*taken})), cause, excuse, -1, *times)


def _promised(tables: Tables) -> bool:
    return any(isinstance(one, Mapping) and one.get("type") == PROMISE for one in tables.asked.get("promises") or ())


def _subscriptions(tables: Tables, until_ns: int) -> str:
    changed = (window for life in tables.lives.values() for window in life.subscribed)
    return "subscriptions" if any(window.begin_ns <= until_ns for window in changed) else ""


RULES: dict[Rule, tuple[str, ...]] = {unbalanced: ("unbalanced",), not_sticky: ("not-sticky",)}
