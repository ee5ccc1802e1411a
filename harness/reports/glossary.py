"""The meaning of each kind of finding, in one sentence, ordered by severity: the worst kinds first.

If Jepsen has another name for a kind, its sentence ends with that name. The page links every finding to its entry.
"""

from __future__ import annotations

from fencepost.model.findings import FINDINGS

GLOSSARY: dict[str, str] = {kind.name: kind.entry for kind in FINDINGS.values()}

CAUSES: dict[str, str] = {
    "slow handler": "its handler processed one record all that time",
    "skipped": "it was never delivered to any member",
    "unrecorded": "no delivery is recorded during the assignment that committed past it",
    "forked": "its consumer was polled in a forked process, which receives no records",
    "expired": "the committed offset had expired, and without one the program starts at the end of the log",
    "latest": "the group had not committed an offset yet, and without one the program starts at the end of the log",
    "committed-unprocessed": "it was delivered, and the group committed past it before its processing ended",
    "seek": "the member's program had moved its position",
    "inside one poll": "the records of one poll were not in order",
    "told a member": "the coordinator sent this answer to a member of the group",
    "answer not seen": "the coordinator had just loaded the group, and no broker shows its answer to the member",
    "in-doubt": "its processing had begun, the member died, and a later commit went past it",
}


def alarm(kind: str) -> int:
    """The rank of ``kind`` by severity: smaller is worse; kinds without an entry rank in the middle."""
    order = list(GLOSSARY)
    return order.index(kind) if kind in GLOSSARY else len(order) // 2


def remedy(kind: str) -> str:
    """What a program usually has to change where ``kind`` is a violation; empty: that is not known."""
    return FINDINGS[kind].remedy if kind in FINDINGS else ""


def meaning(kind: str) -> str:
    """The entry of ``kind``."""
    return GLOSSARY.get(kind, "This version of the report has no entry for this kind.")
