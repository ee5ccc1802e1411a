"""Rules that look at no record: what callbacks, commits and the coordinator's own log say of each other.

Their tables have a row per callback, commit or round, not per record, and are swept in order, on the driver; so every
finder performs these rules themselves. Like the oracle's, a rule's docstring says exactly what a sighting is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps

from fencepost.checkers.group_rules import callbacks, commits, effects, ownership, progress, rebalances
from fencepost.checkers.group_rules.rule import Rule


def _by_name(rules: Mapping[Rule, tuple[str, ...]]) -> dict[Rule, tuple[str, ...]]:
    """Rules about callbacks and assignments, which know no partition but by its name."""

    def of(rule: Rule) -> Rule:
        return wraps(rule)(lambda tables: rule(tables.by_name))

    return {of(rule): kinds for rule, kinds in rules.items()}


RULES: dict[Rule, tuple[str, ...]] = {
    **_by_name(callbacks.RULES),
    **commits.RULES,
    **effects.RULES,
    **_by_name(ownership.RULES),
    **_by_name(progress.RULES),
    **_by_name(rebalances.RULES),
}
