"""Rules that look at no record: what callbacks, commits and the coordinator's own log say of each other.

Their tables have a row per callback, commit or round, not per record, and are swept in order, on the driver; so every
finder performs these rules themselves. Like the oracle's, a rule's docstring says exactly what a sighting is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fencepost.checkers.coordination import callbacks, commits, effects, ownership, progress, rebalances
from fencepost.checkers.sightings import Sighting
from fencepost.checkers.tables import Tables

Rule = Callable[[Tables], Iterable[Sighting]]

RULES: dict[Rule, tuple[str, ...]] = {
    **callbacks.RULES,
    **commits.RULES,
    **effects.RULES,
    **ownership.RULES,
    **progress.RULES,
    **rebalances.RULES,
}
