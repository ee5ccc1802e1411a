"""The kinds that nobody can see where members are black boxes, or where only their effects show what they processed,
each with the reason. (Rule 14 of the checks.)

What brokers record of black boxes is judged as ever: commits and who wrote them, assignments, generations, requests,
the log itself. What stands still is judged by commits. Everything else is unknown, never kept: a promise that speaks of
one of these kinds is unknown, whatever was seen of its others, unless one of those breaks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.checkers.tables import Tables
from fencepost.model.findings import ALWAYS, AT_MOST_ONCE, FINDINGS

BY_EFFECT = "an effect shows neither which member processed its record nor when"


def unjudged(tables: Tables) -> Mapping[str, str]:
    """By kind the sentence that says why it cannot be judged in this run; none where members report what they do."""
    kinds = FINDINGS.values()
    if tables.black_box:
        return {kind.name: f"a black box does not report {kind.unreported}" for kind in kinds if kind.unreported}
    if not tables.by_effect:
        return {}
    once = any(promise.get("level") == AT_MOST_ONCE for promise in tables.promised("delivery"))
    hidden = {ALWAYS, AT_MOST_ONCE} if once else {ALWAYS}
    return {kind.name: BY_EFFECT for kind in kinds if kind.hidden_by_effects in hidden}


def told(kinds: Iterable[str], blind: Mapping[str, str]) -> str:
    """A sentence about those of some kinds that cannot be judged; empty when all can."""
    found: dict[str, list[str]] = {}
    for kind in kinds:
        if kind in blind:
            found.setdefault(blind[kind], []).append(kind)
    listed = "; ".join(f"{why}: {', '.join(those)}" for why, those in found.items())
    return f"not all of it can be judged: {listed}" if listed else ""
