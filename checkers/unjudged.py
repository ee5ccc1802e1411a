"""The kinds that nobody can see where members are black boxes, or where their effects alone tell what they processed,
each with what is missing. (Rule 14 of the checks.)

What brokers record of black boxes is judged as ever: commits and who wrote them, assignments, generations, requests,
the log itself. What stands still is judged by commits. Everything else is unknown, never kept: a promise that speaks of
one of these kinds is unknown, whatever was seen of its others, unless one of those breaks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.checkers.tables import Tables

LACKING: Mapping[str, tuple[str, ...]] = {
    "which records its client returned to it, and when": (
        "unseen",
        "phantom",
        "delivered-then-lost",
        "aborted-read",
        "inconsistent-offsets",
        "redelivery",
        "avoidable-redelivery",
        "redelivery-below-commit",
        "redelivery-loop",
        "rewind",
        "poll-skip",
        "delivery-outside-assignment",
        "wrong-start",
    ),
    "when it began and finished a record": (
        "commit-ahead",
        "off-by-one",
        "fenced-and-carried-on",
        "key-order",
        "stale-effect",
        "stale-backlog",
        "processing-overlap",
        "processing-after-revocation",
    ),
    "what its client told it of its partitions": (
        "assignment-overlap",
        "assignment-mismatch",
        "callback-ledger",
        "early-assignment",
        "needless-revocation",
        "lost-told-as-revoked",
    ),
    "what its client told it of its commits": ("silent-commit-failure", "acknowledged-commit-missing"),
    "when it polls": ("stuck-member",),
    "what its records did elsewhere": (
        "duplicate-effect",
        "missing-effect",
        "stale-write",
        "dead-letter-twice",
        "dead-letter-missing",
        "per-entity-order",
        "requeue-missing",
        "requeue-twice",
        "requeued-and-done",
    ),
}
BY_EFFECT = "an effect tells neither who processed its record nor when"
LACKING_BY_EFFECT = ("key-order", "stale-effect", "stale-backlog", "processing-overlap")


def unjudged(tables: Tables) -> Mapping[str, str]:
    """By kind the sentence that says why it cannot be judged in this run; none where members tell what they do."""
    if tables.black_box:
        return {kind: f"a black box tells nobody {what}" for what, kinds in LACKING.items() for kind in kinds}
    if not tables.by_effect:
        return {}
    once = any(promise.get("level") == "at-most-once" for promise in tables.promised("delivery"))
    return dict.fromkeys((*LACKING_BY_EFFECT, *(("redelivery",) if once else ())), BY_EFFECT)


def told(kinds: Iterable[str], blind: Mapping[str, str]) -> str:
    """A sentence about those of some kinds that cannot be judged; empty when all can."""
    found: dict[str, list[str]] = {}
    for kind in kinds:
        if kind in blind:
            found.setdefault(blind[kind], []).append(kind)
    listed = "; ".join(f"{why}: {', '.join(those)}" for why, those in found.items())
    return f"not all of it can be judged: {listed}" if listed else ""
