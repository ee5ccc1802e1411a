"""The rule of certainty: when a violation counts although a part of the history is missing or damaged.

A violation is *certain* when nothing that is missing could show it to be harmless: then the promise is broken, whatever
else is in doubt. What could show that is its *ground*, one for each kind:

* ``anywhere``: parts of which every file matters, because anybody's record could explain the violation away (somebody
  else finished the record; the coordinator had removed the owner);
* ``own``: parts of which only the files of the members that it names matter, and those of the harness (its declared
  acts, the deaths and pauses that it saw).

A violation with damage in its ground is a note, and the promise is unknown. A rule that failed on some records takes
nothing from what it found in others. "Valid" is another matter: for that, every part must be whole that could hide a
violation (see ``needs``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from fencepost.checkers.tables import PARTS
from fencepost.checkers.tables.answers import NOT_SEEN
from fencepost.checkers.tables.rows import Damage
from fencepost.history import HARNESS
from fencepost.model import Anomaly


@dataclass(frozen=True)
class Ground:
    """What a kind of violation rests on."""

    anywhere: frozenset[str]
    own: frozenset[str] = frozenset()


def _ground(*anywhere: str, own: Iterable[str] = ()) -> Ground:
    """Nothing can be said without the scenario and the numbers of the partitions."""
    return Ground(frozenset({"scenario", "partitions", *anywhere}), frozenset(own))


_COMMITS: Mapping[str, Ground] = {
    "stale-offset-answer": _ground("log", "offsets", "requests", "metadata", own=["events", "delivered"]),
    "commit-regression": _ground("plan", "offsets", "requests", "host", own=["events"]),
    "commit-ahead": _ground("log", "delivered", "offsets", own=["events"]),
    "commit-beyond-end": _ground("log", "delivered", "produced", "offsets", own=["events"]),
    "off-by-one": _ground("log", "delivered", "events", "offsets"),
    "foreign-commit": _ground("offsets", "requests", "events"),
    "zombie-commit": _ground("offsets", "requests", "events"),
    "fenced-and-carried-on": _ground("plan", "offsets", "host", own=["events", "delivered"]),
    "silent-commit-failure": _ground("offsets", "requests", own=["events"]),
    "acknowledged-commit-missing": _ground("offsets", "requests", own=["events"]),
    "wrong-start": _ground("log", "offsets", "requests", own=["events", "delivered"]),
}
_LIVENESS = ("plan", "events", "delivered", "log", "offsets", "host")
GROUNDS: Mapping[str, Ground] = {
    "duplicate-write": _ground("log", own=["events"]),
    "nonmonotonic-send": _ground("log", own=["events"]),
    "lost-write": _ground("log", own=["events", "produced"]),
    "phantom": _ground("log", "produced", own=["delivered"]),
    "delivered-then-lost": _ground("log", own=["events", "delivered"]),
    "aborted-read": _ground("log", own=["events", "delivered"]),
    "inconsistent-offsets": _ground(own=["events", "delivered"]),
    "delivery-outside-assignment": _ground(own=["events", "delivered"]),
    "unseen": _ground("log", "delivered", "events", "offsets"),
    "redelivery": _ground("offsets", own=["events", "delivered"]),
    "avoidable-redelivery": _ground("offsets", own=["events", "delivered"]),
    "redelivery-below-commit": _ground("offsets", own=["events", "delivered"]),
    "redelivery-loop": _ground("plan", "offsets", "events", own=["delivered"]),
    "rewind": _ground(own=["events", "delivered"]),
    "poll-skip": _ground("log", own=["events", "delivered"]),
    "key-order": _ground("delivered", own=["events"]),
    "assignment-overlap": _ground("offsets", own=["events"]),
    "coordinator-overlap": _ground("offsets"),
    "generation-regression": _ground("offsets"),
    "assignment-mismatch": _ground("plan", "events", "offsets", "requests", "host"),
    "callback-ledger": _ground(own=["events"]),
    "early-assignment": _ground("offsets", "host", own=["events"]),
    "needless-revocation": _ground("events", "offsets", "metadata"),
    "duplicate-effect": _ground(own=["events"]),
    "missing-effect": _ground("log", "events", "offsets", "effects"),
    "dead-letter-twice": _ground(own=["events"]),
    "per-entity-order": _ground("log", "effects", own=["events", "delivered"]),
    "dead-letter-missing": _ground("log", "events", "delivered", "offsets", "effects"),
    "requeue-missing": _ground("log", "events", "delivered", "offsets", "effects"),
    "requeue-twice": _ground(own=["events"]),
    "requeued-and-done": _ground(own=["events", "delivered"]),
    "stale-write": _ground(own=["events"]),
    "unbalanced": _ground("events", "offsets", "requests"),
    "not-sticky": _ground("events", "offsets", "requests"),
    "rebalance-on-static-bounce": _ground("plan", "events", "offsets", "requests", "metadata"),
    "long-pause": _ground("events", "plan", "host"),
    "lost-told-as-revoked": _ground(own=["events"]),
    "duplicate-instance": _ground("requests", own=["events"]),
    "orphaned-partition": _ground("events", "offsets", "host", "metadata"),
    "never-stable": _ground("events", "offsets", "host"),
    "dead-member": _ground("plan", own=["events"]),
    "stale-effect": _ground(own=["events", "delivered"]),
    "slow-recovery": _ground(*_LIVENESS, "produced", "metadata"),
    "collateral-stop": _ground(*_LIVENESS, "requests", "produced", "metadata"),
    "stuck-member": _ground("plan", "host", own=["events", "delivered"]),
    "processing-overlap": _ground(own=["events", "delivered"]),
    "processing-after-revocation": _ground(own=["events", "delivered"]),
    "stale-backlog": _ground("offsets", own=["events", "delivered"]),
    "unconsumed": _ground(*_LIVENESS),
    "stuck-partition": _ground(*_LIVENESS, "produced", "metadata"),
    **_COMMITS,
}
OF_BLACK_BOXES: Mapping[str, Ground] = {  # where others rest on callbacks
    "long-pause": _ground("plan", "offsets", "requests", "host"),
}
BY_EFFECT: Mapping[str, Ground] = {  # where others rest on what members tell of their records
    "unseen": _ground("log", "events", "offsets", "effects"),
}
OF_RECORDS = ("unseen", "commit-ahead")  # their offsets are those of the records that nobody finished
_ALL = Ground(frozenset(PARTS))


def doubt(
    anomaly: Anomaly, damage: Iterable[Damage], black_box: bool = False, by_effect: bool = False
) -> Damage | None:
    """The damage that could hide a harmless explanation of the anomaly; None: it is certain."""
    grounds = {**GROUNDS, **(OF_BLACK_BOXES if black_box else {}), **(BY_EFFECT if by_effect else {})}
    ground, concerned = grounds.get(anomaly.kind, _ALL), {"", HARNESS, *anomaly.members}
    those = (d for d in damage if d.part in ground.anywhere or (d.part in ground.own and whose(d.file) in concerned))
    return next((d for d in those if _hurts(d, anomaly)), None)


def _hurts(damage: Damage, anomaly: Anomaly) -> bool:
    """Whether damage that hurts a place alone hurts what an anomaly tells of. A member of which some deliveries are not
    recorded may have been given others, too, that it did not commit past."""
    if damage.place is None or not anomaly.topic:
        return True
    there, offsets = damage.place
    here = there == (anomaly.topic, anomaly.partition)
    if anomaly.kind in OF_RECORDS:
        return here and anomaly.first_offset < offsets.stop and anomaly.last_offset >= offsets.start
    return here or whose(damage.file) in anomaly.members


def unseen_answer(anomaly: Anomaly) -> str:
    """Why nobody can tell whether the brokers brought the anomaly about; empty where they certainly did not, or where
    that is what the anomaly says."""
    if anomaly.cause != NOT_SEEN:
        return ""
    return "its coordinator had just loaded the group, and may have told an older offset: no broker shows its answer"


def whose(file: str) -> str:
    """The actor that a file of the history is about; empty when it is about all of them.

    ``history/delivered/member-2.1.parquet``, ``history/segments/member-2.1.3.seg``, ``history/events/harness.jsonl``.
    """
    path = PurePosixPath(file)
    if path.parent.name in ("events", "delivered"):
        return path.stem
    if path.parent.name == "produced":
        return path.stem.removesuffix(".unacked")
    return path.stem.rpartition(".")[0] if (path.parent.name, path.suffix) == ("segments", ".seg") else ""
