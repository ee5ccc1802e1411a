"""The kinds that cannot be judged, each with the reason. (Rule 14 of the checks.)

Some are invisible for black boxes, others if only effects show which records were processed, others if the cluster does
not show what its brokers recorded.

The brokers' records about black boxes are judged as usual: commits and their writers, assignments, generations,
requests, and the log itself. Partitions that stand still are judged by commits. Everything else is unknown: a promise
that covers an invisible kind is never kept, but unknown, unless one of its visible kinds breaks it.

A cluster that shows less than brokers record (a foreign one) hides kinds, too. There a promise is judged by its other
kinds, and the verdict lists the hidden ones, unless the scenario demands the full evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.checkers.tables import Tables
from fencepost.model.findings import ALWAYS, AT_MOST_ONCE, FINDINGS

NO_ORDER = (
    "no order of the effects is known: set effects_in_order of the workload if its function lists them in the order "
    "in which they were written"
)
BY_EFFECT = "an effect shows neither which member processed its record nor when"


def unobservable(tables: Tables) -> Mapping[str, str]:
    """The kinds that cannot be judged in this run, each with a sentence why; empty if members report what they do."""
    kinds = FINDINGS.values()
    if tables.black_box:
        return {kind.name: f"a black box does not report {kind.unreported}" for kind in kinds if kind.unreported}
    ordered = any(promise.get("in_order") for promise in tables.promised("effects"))
    found = {"effects-out-of-order": NO_ORDER} if ordered and not tables.effects_in_order else {}
    if not tables.by_effect:
        return found
    once = any(promise.get("level") == AT_MOST_ONCE for promise in tables.promised("delivery"))
    hidden = {ALWAYS, AT_MOST_ONCE} if once else {ALWAYS}
    return {**found, **{kind.name: BY_EFFECT for kind in kinds if kind.hidden_by_effects in hidden}}


def hidden_kinds(tables: Tables) -> Mapping[str, str]:
    """The kinds of which some violations go unnoticed because the cluster does not show its own records, each with a
    sentence why."""
    reasons = {damage.part: damage.what for damage in tables.not_shown}
    hiding = {kind.name: [part for part in kind.hidden_without if part in reasons] for kind in FINDINGS.values()}
    return {kind: reasons[parts[0]] for kind, parts in hiding.items() if parts}


def explanation(kinds: Iterable[str], blind: Mapping[str, str]) -> str:
    """A sentence about the ``kinds`` that cannot be judged; empty if all can be."""
    found: dict[str, list[str]] = {}
    for kind in kinds:
        if kind in blind:
            found.setdefault(blind[kind], []).append(kind)
    listed = "; ".join(f"{why}: {', '.join(names)}" for why, names in found.items())
    return f"not all of it can be judged: {listed}" if listed else ""
