"""The rule of certainty: when a violation counts although a part of the history is missing or damaged.

A violation is *certain* when nothing that is missing could show it to be harmless: then the promise is broken, whatever
else is in doubt. What could show that is the evidence that its kind needs (``FindingKind.needs``):

* ``of_all``: parts of which every file matters, because anybody's record could explain the violation away (somebody
  else finished the record; the coordinator had removed the owner);
* ``of_members``: parts of which only the files of the members that it names matter, and those of the harness (its
  declared acts, the deaths and pauses that it saw).

A violation that needs a damaged part is a note, and the promise is unknown. A rule that failed on some records takes
nothing from what it found in others. "Valid" is another matter: for that, every part must be whole that could hide a
violation (see ``needs``).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from fencepost.checkers.tables import PARTS
from fencepost.checkers.tables.answers import NOT_SEEN
from fencepost.checkers.tables.rows import Damage
from fencepost.history import HARNESS
from fencepost.model import Anomaly
from fencepost.model.findings import FINDINGS, NeededEvidence

_ALL = NeededEvidence(frozenset(PARTS))


def doubt(
    anomaly: Anomaly, damage: Iterable[Damage], black_box: bool = False, by_effect: bool = False
) -> Damage | None:
    """The damage that could hide a harmless explanation of the anomaly; None: it is certain."""
    needs, concerned = _needs(anomaly.kind, black_box, by_effect), {"", HARNESS, *anomaly.members}
    near = (d for d in damage if d.part in needs.of_all or (d.part in needs.of_members and whose(d.file) in concerned))
    return next((d for d in near if _hurts(d, anomaly)), None)


def _needs(name: str, black_box: bool, by_effect: bool) -> NeededEvidence:
    """The evidence that a kind needs; all of it where nothing else is known."""
    kind = FINDINGS.get(name)
    if kind is None:
        return _ALL
    return (by_effect and kind.needs_by_effect) or (black_box and kind.needs_of_black_boxes) or kind.needs or _ALL


def _hurts(damage: Damage, anomaly: Anomaly) -> bool:
    """Whether damage that hurts a place alone hurts what an anomaly tells of. A member of which some deliveries are not
    recorded may have been given others, too, that it did not commit past."""
    if damage.place is None or not anomaly.topic:
        return True
    there, offsets = damage.place
    here = there == (anomaly.topic, anomaly.partition)
    if anomaly.kind in FINDINGS and FINDINGS[anomaly.kind].at_records:
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
