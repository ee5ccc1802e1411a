"""The stable periods of a group after its rebalances, with the owners of partitions, by the coordinator's log. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from fencepost.checkers.tables.rows import FOREVER, NS, AssignmentChange, Rebalance, Window

REST_NS = 5 * NS  # a cooperative rebalance has a second round; with the consumer protocol members revoke one by one


class StablePeriod(NamedTuple):
    """A time after a rebalance in which no partition changed its owner, and no member requested to join.

    Attributes:
        number: the index of the rebalance in the table ``rounds``.
        members: the members of the group. Every incarnation of a static id is named by its first incarnation.
        owners: the owner of each partition, named likewise.
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
    """The stable periods of at least 5 s that have an end; a period ends at ``calm_ns`` at the latest.

    ``same``: replaces each name by the name that ``StablePeriod`` has for it."""
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
            owned = [tp for tp, owner in owners.items() if owner]
            named = dict(zip(owned, same(owners[tp] for tp in owned), strict=True))
            found.append(StablePeriod(number, Window(since_ns, end_ns), frozenset(same(one.members)), named))
    return found
