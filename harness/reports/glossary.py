"""What each kind of finding means, in one sentence; the order is the order of alarm, the worst kinds first.

Jepsen's name stands behind it where Jepsen has another one. The page links every finding to its entry here.
"""

from __future__ import annotations

GLOSSARY: dict[str, str] = {
    "lost-write": "The broker acknowledged the record, and it is not in the log at the audit.",
    "delivered-then-lost": "A member received the record, a producer sent it, and it is not in the log at the audit.",
    "unseen": "The record is in the log, the group committed past it, and nobody finished processing it.",
    "phantom": "A member received a record that nobody produced and the log does not hold.",
    "inconsistent-offsets": "One offset of one partition was seen with two different contents.",
    "duplicate-effect": "One record has two effects in what members write to.",
    "missing-effect": "The group committed past a record that has no effect in what members write to.",
    "requeue-missing": "The group committed past a record that was to come again, and is not in the log again.",
    "stale-write": "A member wrote to the store after the next holder of its partition's lease had written.",
    "aborted-read": "A read_committed member received a record of an aborted transaction (Jepsen: G1a).",
    "stale-offset-answer": "A coordinator told an older committed offset than one that had been acknowledged before, "
    "or this is what followed from it: the brokers' fault, and no member's.",
    "commit-ahead": "An offset was committed although a record below it was certainly unfinished.",
    "commit-beyond-end": "An offset was committed above anything that can have been written by then.",
    "commit-regression": "The committed offset of a partition went back.",
    "acknowledged-commit-missing": "The client reported a successful commit that the offsets topic does not hold.",
    "silent-commit-failure": "The last attempt of a commit was refused, and the client reported success.",
    "fenced-and-carried-on": "The coordinator fenced the member's commit, and the member went on regardless.",
    "foreign-commit": "A commit was accepted for a partition that the coordinator had given to another member.",
    "zombie-commit": "A commit of a former owner was accepted after the partition had a new owner.",
    "wrong-start": "The first record of an assignment is not the one that the committed offset points at.",
    "off-by-one": "The group commits the last finished offset instead of the next one to read.",
    "redelivery-below-commit": "A record was processed again although the new owner's committed start lay above it.",
    "redelivery-loop": "The same offsets are delivered over and over and the committed offset stands still.",
    "rewind": "Within one assignment, the member was given an offset at or below an earlier one "
    "(Jepsen: nonmonotonic-poll; inside one poll, int-nonmonotonic-poll).",
    "poll-skip": "Within one assignment, the deliveries jumped over a record that is visible in the log "
    "(Jepsen: the same; inside one poll, int-poll-skip).",
    "key-order": "Processing of a record began before an earlier record of its key was first finished.",
    "per-entity-order": "A record was processed although an earlier one of its key had a dead letter that was not "
    "retried yet, or was re-queued behind it.",
    "stale-effect": "A former owner finished a record after a later owner had finished it: its effect came last.",
    "nonmonotonic-send": "Records of one producer and partition landed in another order than they were sent.",
    "assignment-overlap": "Two members certainly owned one partition at the same time, by their own callbacks.",
    "coordinator-overlap": "The coordinator's own records give one partition to two members.",
    "processing-overlap": "Two members were certainly processing records of one partition at the same time.",
    "stale-backlog": "A former owner began to process records after the coordinator had given the partition away.",
    "processing-after-revocation": "Processing began after the member's own revocation callback had returned.",
    "delivery-outside-assignment": "A poll returned a record of a partition that the member certainly does not own.",
    "assignment-mismatch": "At rest, the callbacks that ran do not add up to the coordinator's assignment.",
    "callback-ledger": "A partition was assigned twice in a row, or revoked while it was not owned.",
    "early-assignment": "A partition was assigned before its former owner's revocation (eager: anyone's) returned.",
    "needless-revocation": "A partition was taken from a member and given back, with no change that explains it.",
    "lost-told-as-revoked": "The member was fenced before its callback began, and was told revoked instead of lost.",
    "duplicate-instance": "Two live members with one static id both went on.",
    "generation-regression": "The group's generation or a member's epoch went back.",
    "stuck-partition": "A partition has an owner and waiting records, and nothing was delivered beyond the bound.",
    "orphaned-partition": "The group is stable, and nobody owns the partition.",
    "stuck-member": "A member owns partitions and sends heartbeats, and neither polls nor works on records.",
    "dead-member": "A member ended, or its client gave up, by itself.",
    "never-stable": "The group did not become stable within its bound.",
    "unconsumed": "Visible records were left in the log after the drain (Jepsen: unseen).",
    "slow-recovery": "The group took longer to recover after the heal than was promised.",
    "collateral-stop": "A partition that no fault touched stopped during a fault.",
    "duplicate-write": "One send call is in the log at two offsets (Jepsen: duplicate).",
    "redelivery": "A record was finished again after its partition changed hands, before its offset was committed.",
    "avoidable-redelivery": "A record was finished again although the former owner gave its partition up cleanly.",
    "dead-letter-twice": "A record that cannot be processed has two dead letters.",
    "dead-letter-missing": "The group committed past a record that cannot be processed and has no dead letter.",
    "requeue-twice": "A record that was re-queued is in the log again more than once.",
    "requeued-and-done": "A record was re-queued, and processed as well: its effect comes twice.",
    "rebalance-on-static-bounce": "A static member came back within its session, and the group rebalanced anyway.",
    "long-pause": "A rebalance stopped a partition for longer than the promised bound.",
    "unbalanced": "At rest, a member had at least two partitions more than another one.",
    "not-sticky": "Partitions were taken from members that stayed, more than an even share asks for.",
    "unproven-fault": "A step of the plan was not proven begun or healed, or did not reach what it was meant to.",
    "fault-not-applicable": "A step of the plan that need not fire found nothing to hit.",
    "damaged-file": "A file of the run folder is missing or damaged; what depends on it cannot be judged.",
    "history-incomplete": "The recorded history has a hole or a torn record; what depends on it cannot be judged.",
    "unrecorded-delivery": "A record must have been given to a member, and nobody tells of that.",
}

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
