"""What each kind of finding means, in one sentence; the order is the order of alarm, the worst kinds first.

Jepsen's name stands behind it where Jepsen has another one. The page links every finding to its entry here.
"""

from __future__ import annotations

from fencepost.model.findings import FINDINGS

GLOSSARY: dict[str, str] = {kind.name: kind.entry for kind in FINDINGS.values()}

CAUSES: dict[str, str] = {
    "slow handler": "its handler was at work on one record all that time",
    "skipped": "it was never delivered to anyone",
    "unrecorded": "no delivery at all is recorded of the assignment that committed past it",
    "forked": "its consumer was polled in a process that was forked from its own, where no record can come",
    "expired": "the committed offset had expired, and the program begins at the end without one",
    "committed-unprocessed": "it was delivered, and committed before its processing ended",
    "seek": "the member's program had set another position",
    "inside one poll": "what one poll returned was not in order",
    "told a member": "a member of the group was told so",
    "answer not seen": "the coordinator had just loaded the group, and no broker shows what it told the member",
    "in-doubt": "its processing had begun, the member died, and a later commit went past it",
}


def alarm(kind: str) -> int:
    """The place of ``kind`` in the order of alarm: smaller is worse; kinds without an entry come in the middle."""
    order = list(GLOSSARY)
    return order.index(kind) if kind in GLOSSARY else len(order) // 2


def meaning(kind: str) -> str:
    """The one sentence of ``kind``."""
    return GLOSSARY.get(kind, "This version of the report has no entry for this kind.")
