"""Rules about effects in a store outside of Kafka, in the order that the store itself gave them.

Not by the members' done stamps: one that is stopped between its write and its stamp did nothing wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fencepost.checkers.sightings import Sighting
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.effects import Effect

if TYPE_CHECKING:
    from fencepost.checkers.coordination import Rule


def duplicate_effect(tables: Tables) -> Iterator[Sighting]:
    """``duplicate-effect``: a record has more than one effect in the store.

    One sighting for each effect after the first one. members: who wrote it, and who wrote the first one; times: the
    first one's, and its.
    """
    first: dict[tuple[int, int], Effect] = {}
    for effect in tables.effects:
        before = first.setdefault((effect.tp, effect.offset), effect)
        if before is not effect:
            members = (effect.incarnation, before.incarnation)
            yield Sighting("duplicate-effect", effect.tp, members, "", "", effect.offset, before.at_ns, effect.at_ns)


def stale_write(tables: Tables) -> Iterator[Sighting]:
    """``stale-write``: an effect is in the store after one in its partition that was made under a newer token.

    members: who wrote it, and who wrote the first one under the newest token by then; times: that one's, and its.
    """
    newest: dict[int, Effect] = {}
    for effect in tables.effects:
        latest = newest.setdefault(effect.tp, effect)
        if effect.token > latest.token:
            newest[effect.tp] = effect
        elif effect.token < latest.token:
            members = (effect.incarnation, latest.incarnation)
            yield Sighting("stale-write", effect.tp, members, "", "", effect.offset, latest.at_ns, effect.at_ns)


RULES: dict[Rule, tuple[str, ...]] = {duplicate_effect: ("duplicate-effect",), stale_write: ("stale-write",)}
