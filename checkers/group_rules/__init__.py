"""Rules that need no records: they compare callbacks, commits and the coordinator's log with each other.

Their tables have one row per callback, commit or rebalance, not per record. So every detector runs these rules on the
driver, in one pass over the sorted rows. As in the oracle, the docstring of a rule defines its detections exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps

from fencepost.checkers.group_rules import callbacks, commits, effects, ownership, progress, rebalances
from fencepost.checkers.group_rules.rule import Rule


def _by_name(rules: Mapping[Rule, tuple[str, ...]]) -> dict[Rule, tuple[str, ...]]:
    """Make rules use ``Tables.by_name``: callbacks and assignments identify a partition only by its name."""

    def wrapped(rule: Rule) -> Rule:
        return wraps(rule)(lambda tables: rule(tables.by_name))

    return {wrapped(rule): kinds for rule, kinds in rules.items()}


RULES: dict[Rule, tuple[str, ...]] = {
    **_by_name(callbacks.RULES),
    **commits.RULES,
    **effects.RULES,
    **_by_name(ownership.RULES),
    **_by_name(progress.RULES),
    **_by_name(rebalances.RULES),
}
