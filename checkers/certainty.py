"""The rule of certainty: when a violation counts although a part of the history is missing or damaged.

A violation is *certain* when no missing evidence could show it to be harmless: then the promise is broken, whatever
else is in doubt. Each kind of finding lists the evidence that could (``FindingKind.needs``):

* ``of_all``: parts in which every file matters, because a record of any actor could explain the violation away (another
  member finished the record; the coordinator had removed the owner);
* ``of_members``: parts in which only the files of the members that the violation names matter, and the files of the
  harness (its declared acts, and the deaths and pauses that it recorded).

A violation that needs a damaged part is a note, and the promise is unknown. If a rule fails on some records, its
findings in other records still count. "Valid" needs more: every part that could hide a violation must be whole (see
``requirements``).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from fencepost.checkers.promises.recovers import NO_BASELINE
from fencepost.checkers.tables import PARTS
from fencepost.checkers.tables.answers import NOT_SEEN
from fencepost.checkers.tables.rows import Damage
from fencepost.history import HARNESS
from fencepost.model import Anomaly
from fencepost.model.findings import FINDINGS, NeededEvidence

_ALL = NeededEvidence(frozenset(PARTS))


def missing_evidence(
    anomaly: Anomaly, damage: Iterable[Damage], black_box: bool = False, by_effect: bool = False
) -> Damage | None:
    """The damage that could hide a harmless explanation of the anomaly; None: it is certain."""
    needs, concerned = _needs(anomaly.kind, black_box, by_effect), {"", HARNESS, *anomaly.members}
    near = (d for d in damage if d.part in needs.of_all or (d.part in needs.of_members and whose(d.file) in concerned))
    return next((d for d in near if _hurts(d, anomaly)), None)


def _needs(name: str, black_box: bool, by_effect: bool) -> NeededEvidence:
    """The evidence that a kind needs; every part of the history if the registry has no entry."""
    kind = FINDINGS.get(name)
    if kind is None:
        return _ALL
    return (by_effect and kind.needs_by_effect) or (black_box and kind.needs_of_black_boxes) or kind.needs or _ALL


def _hurts(damage: Damage, anomaly: Anomaly) -> bool:
    """Whether the damage affects the offsets or members of an anomaly; damage without a place affects every anomaly.

    A member with some unrecorded deliveries may have more of them, at offsets that it did not commit past.
    """
    if damage.place is None or not anomaly.topic:
        return True
    there, offsets = damage.place
    here = there == (anomaly.topic, anomaly.partition)
    if anomaly.kind in FINDINGS and FINDINGS[anomaly.kind].at_records:
        return here and anomaly.first_offset < offsets.stop and anomaly.last_offset >= offsets.start
    return here or whose(damage.file) in anomaly.members


def doubt_of_kind(anomaly: Anomaly) -> str:
    """Why it is unknown whether the anomaly is a violation, by its cause or excuse: whether brokers caused it, or
    whether records always wait so long; empty if that is known."""
    if anomaly.excuse == NO_BASELINE:
        return f"{NO_BASELINE}: let the load go on for longer before the first fault"
    if anomaly.cause != NOT_SEEN:
        return ""
    return (
        "its coordinator had just loaded the group and may have answered with an older offset: no broker logged the "
        "answer"
    )


def whose(file: str) -> str:
    """The actor that a file of the history is about; empty if it is about all actors.

    ``history/delivered/member-2.1.parquet``, ``history/segments/member-2.1.3.seg``, ``history/events/harness.jsonl``.
    """
    path = PurePosixPath(file)
    if path.parent.name in ("events", "delivered"):
        return path.stem
    if path.parent.name == "produced":
        return path.stem.removesuffix(".unacked")
    return path.stem.rpartition(".")[0] if (path.parent.name, path.suffix) == ("segments", ".seg") else ""
