"""When a group rested after a rebalance, by the coordinator's log, and who had what then. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from fencepost.checkers.tables.rows import FOREVER, NS, AssignmentChange, Rebalance, Window

REST_NS = 5 * NS  # a cooperative rebalance has a second round, and members of the consumer protocol give up one by one


class StablePeriod(NamedTuple):
    """A time in which the group rested after a round: no partition changed hands, and nobody asked to join.

    Attributes:
        number: of the round, in the coordinator's log.
        members, owners: who was in it, and who had each partition; all lives of a static id are the first one.
    """

    number: int
    window: Window
    members: frozenset[str]
    owners: Mapping[int, str]


def stable_periods(
    rounds: Sequence[Rebalance],
    given: Iterable[AssignmentChange],
    calm_ns: int,
    same: Callable[[Iterable[str]], Iterable[str]],
) -> list[StablePeriod]:
    """Those of at least 5 s that are over; what comes after ``calm_ns`` is none. ``same`` names who is in
    ``StablePeriod``."""
    begins = (r.begin_ns - r.uncertainty_ns for r in rounds[1:])
    found, owners, changes = list[StablePeriod](), dict[int, str](), iter(sorted(given, key=lambda g: g.order))
    ahead = next(changes, None)
    for number, (one, begin_ns) in enumerate(zip(rounds, chain(begins, [FOREVER]), strict=False)):
        end_ns, since_ns = min(begin_ns, calm_ns), one.end_ns + one.uncertainty_ns
        while ahead is not None and ahead.at_ns - ahead.uncertainty_ns < end_ns:
            owners[ahead.tp] = ahead.incarnation or ahead.member_id
            since_ns = max(since_ns, ahead.at_ns + ahead.uncertainty_ns)
            ahead = next(changes, None)
        if end_ns - since_ns >= REST_NS and end_ns < FOREVER:
            has = [tp for tp, owner in owners.items() if owner]
            named = dict(zip(has, same(owners[tp] for tp in has), strict=True))
            found.append(StablePeriod(number, Window(since_ns, end_ns), frozenset(same(one.members)), named))
    return found
