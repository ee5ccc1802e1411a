"""The registry of findings: everything about each kind except the rules that find it.

To add a kind, write an entry here, a rule that yields it in ``checkers.oracle`` (and in ``checkers.kernel``) or in
``checkers.group_rules``, and tests for them. The entries are in the order of alarm: the worst kinds first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

_LOG = logging.getLogger(__name__)
ALWAYS, AT_MOST_ONCE = "always", "at-most-once"
# Facts that only members can report; each completes the sentence "a black box does not report …".
DELIVERIES = "which records its client returned to it, and when"
PROCESSING = "when it began and finished a record"
CALLBACKS = "which partitions its client assigned to it and revoked"
COMMITS = "how its commits were answered"
POLLS = "when it polls"
EFFECTS = "what its records did elsewhere"


@dataclass(frozen=True)
class NeededEvidence:
    """The parts of a history that could show a violation to be harmless (see ``checkers.certainty``).

    Attributes:
        of_all: parts in which the files of every actor matter.
        of_members: parts in which only the files of the harness and of the members named by the anomaly matter.
    """

    of_all: frozenset[str]
    of_members: frozenset[str] = frozenset()


@dataclass(frozen=True)
class FindingKind:
    """One kind of finding.

    Attributes:
        name: Jepsen's name where Jepsen has exactly this kind.
        meaning: one sentence for the glossary.
        checks: the names of the promises that cover it, or of a check that always runs: ``faults`` or ``history``.
        needs: the evidence without which a violation is not certain; None: every part of the history.
        needs_of_black_boxes: the same for members that report nothing; None: ``needs``.
        needs_by_effect: the same where only effects show which records were processed; None: ``needs``.
        at_records: its offsets are the offsets of the affected records, so damage at other offsets does not matter.
        liveness: True: something good did not happen in time. False: something bad happened (safety).
        severity: how severe it is when nothing excuses it and the promise sets no other severity.
        unreported: the fact that black boxes do not report, which makes this kind invisible; empty: brokers show it.
        hidden_without: the brokers' own records (parts of the history) without any one of which some violations of this
            kind go unnoticed.
        hidden_by_effects: when this kind is invisible because only effects show which records were processed:
            ``ALWAYS``, or where ``AT_MOST_ONCE`` is promised; empty: never.
        sentence: the template of one finding's sentence, where ``t`` is a
            ``checkers.explanations.anomaly_context.AnomalyContext``; empty: a function in
            ``checkers.explanations`` writes the sentence.
        jepsen: Jepsen's name; empty: Jepsen has none.
        jepsen_in_poll: Jepsen's name where the cause is ``inside one poll``, if it differs.
        advice: what to do about it. The rest of a sentence whose subject is a count ("2 records …").
        remedy: what a program usually has to change, as a sentence; empty: that is not known.
        former: its previous name, which is still accepted.
    """

    name: str
    meaning: str
    checks: tuple[str, ...]
    needs: NeededEvidence | None = None
    needs_of_black_boxes: NeededEvidence | None = None
    needs_by_effect: NeededEvidence | None = None
    at_records: bool = False
    liveness: bool = False
    severity: str = "violation"
    unreported: str = ""
    hidden_without: tuple[str, ...] = ()
    hidden_by_effects: str = ""
    sentence: str = ""
    jepsen: str = ""
    jepsen_in_poll: str = ""
    advice: str = ""
    remedy: str = ""
    former: str = ""

    def jepsens(self, cause: str = "") -> str:
        """Jepsen's name for this kind with this cause; empty when Jepsen has none."""
        return self.jepsen_in_poll if self.jepsen_in_poll and cause == "inside one poll" else self.jepsen

    @property
    def entry(self) -> str:
        """The glossary's text: the meaning, and Jepsen's name if it differs from ours."""
        names = [] if self.jepsen == self.name and not self.jepsen_in_poll else [self.jepsen]
        names = ["the same" if name == self.name else name for name in names]
        names += [f"inside one poll, {self.jepsen_in_poll}"] if self.jepsen_in_poll else []
        listed = "; ".join(filter(None, names))
        return f"{self.meaning.removesuffix('.')} (Jepsen: {listed})." if listed else self.meaning


def _evidence(*of_all: str, own: Iterable[str] = ()) -> NeededEvidence:
    """``own``: parts of the named members. Every kind also needs the scenario and the numbers of the partitions."""
    return NeededEvidence(frozenset({"scenario", "partitions", *of_all}), frozenset(own))


OF_PROGRESS = ("plan", "events", "delivered", "log", "offsets", "host")
_KINDS = (
    FindingKind(
        "lost-write",
        "The broker acknowledged the record, and it is not in the log at the audit.",
        ("delivery", "outside"),
        _evidence("log", own=("events", "produced")),
        sentence="{t.records} {t.were} acknowledged to {t.who} ({t.span}), but the log did not hold {t.them} at the "
        "audit",
        jepsen="lost-write",
    ),
    FindingKind(
        "delivered-then-lost",
        "A member received the record, a producer sent it, and it is not in the log at the audit.",
        ("delivery",),
        _evidence("log", own=("events", "delivered")),
        unreported=DELIVERIES,
        sentence="{t.records} {t.were} produced, and delivered to {t.who} ({t.span}), but the log did not hold "
        "{t.them} at the audit",
    ),
    FindingKind(
        "unseen",
        "The record is in the log, the group committed past it, and no member finished processing it.",
        ("delivery",),
        _evidence("log", "events", "delivered", "offsets"),
        needs_by_effect=_evidence("log", "events", "offsets", "effects"),
        hidden_without=("offsets",),
        at_records=True,
        unreported=DELIVERIES,
        jepsen="unseen",
        remedy="Commit an offset only once everything below it is done: also in the revoked callback, and when "
        "the program ends. With auto-commit, store offsets after the work "
        "(enable.auto.offset.store=false), or commit by hand.",
    ),
    FindingKind(
        "phantom",
        "A member received a record that no producer sent and the log does not hold.",
        ("delivery",),
        _evidence("log", "produced", own=("delivered",)),
        unreported=DELIVERIES,
        sentence="{t.records} {t.were} delivered to {t.who} ({t.span}), but no producer sent {t.them} and the log did "
        "not hold {t.them} at the audit",
    ),
    FindingKind(
        "inconsistent-offsets",
        "One offset of one partition was seen with two different contents.",
        ("delivery",),
        _evidence(own=("events", "delivered")),
        unreported=DELIVERIES,
        sentence="{t.records} {t.were} delivered to {t.who} with different contents than to {t.other} before "
        "({t.span})",
        jepsen="inconsistent-offsets",
    ),
    FindingKind(
        "duplicate-effect",
        "One record has two effects in the store or topic that members write to.",
        ("effects",),
        _evidence("offsets", own=("events",)),
        unreported=EFFECTS,
        advice="had two effects. Make an effect replace the earlier effect of the same record, which its partition "
        "and offset or an id of its own identify; or write the effect and the offset in one transaction.",
        remedy="Let an effect replace the earlier effect of the same record, which its partition and offset or "
        "an id of its own identify.",
    ),
    FindingKind(
        "effects-out-of-order",
        "The first effect of a record was written after an effect of a later record of its key.",
        ("effects",),
        _evidence("events", "log", "effects"),
        unreported=EFFECTS,
        sentence="a later record of the same key had an effect before {t.records} had one",
        remedy="Process the records of one key one after the other, and wait for each effect before the next record.",
    ),
    FindingKind(
        "missing-effect",
        "The group committed past a record that has no effect in the store or topic that members write to.",
        ("effects",),
        _evidence("log", "events", "offsets", "effects"),
        hidden_without=("offsets",),
        unreported=EFFECTS,
        remedy="Commit an offset only once its effect is durable, or write effect and offset in one transaction.",
    ),
    FindingKind(
        "requeue-missing",
        "The group committed past a record that was to be re-queued, and no copy of it is in the log.",
        ("requeued",),
        _evidence("log", "events", "delivered", "offsets", "effects"),
        hidden_without=("offsets",),
        unreported=EFFECTS,
    ),
    FindingKind(
        "stale-write",
        "A member wrote to the store after the next holder of its partition's lease had written.",
        ("effects",),
        _evidence(own=("events",)),
        unreported=EFFECTS,
        sentence="{t.who} wrote the effect of {t.records} at {t.end}, although {t.other}, the next holder of the lease "
        "of {t.place}, had written at {t.begin}",
    ),
    FindingKind(
        "aborted-read",
        "A read_committed member received a record of an aborted transaction.",
        ("delivery",),
        _evidence("log", own=("events", "delivered")),
        unreported=DELIVERIES,
        sentence="{t.records} {t.were} delivered to {t.who} ({t.span}), but the transaction that wrote {t.them} was "
        "aborted",
        jepsen="G1a",
    ),
    FindingKind(
        "stale-offset-answer",
        "A coordinator answered with an older committed offset than one that had been acknowledged before, "
        "or this is a consequence of such an answer: the brokers' fault, not a member's.",
        ("commits", "outside"),
        _evidence("log", "offsets", "requests", "metadata", own=("events", "delivered")),
        hidden_without=("requests", "metadata"),
    ),
    FindingKind(
        "commit-ahead",
        "An offset was committed although a record below it was certainly unfinished.",
        ("commits",),
        _evidence("log", "delivered", "offsets", own=("events",)),
        hidden_without=("offsets",),
        at_records=True,
        unreported=PROCESSING,
        sentence="{t.who} committed past {t.records} ({t.span}) before any member had finished {t.them}",
        remedy="Commit an offset only once everything below it is done. If records are finished out of order, "
        "commit up to the lowest unfinished one.",
    ),
    FindingKind(
        "commit-beyond-end",
        "An offset was committed above every record that can have been written by then.",
        ("commits", "outside"),
        _evidence("log", "produced", "delivered", "offsets", own=("events",)),
        hidden_without=("offsets",),
        remedy="Commit the offset after the last record that was processed, and compute it from that record.",
    ),
    FindingKind(
        "commit-regression",
        "The committed offset of a partition went back.",
        ("commits", "outside"),
        _evidence("plan", "offsets", "requests", "host", own=("events",)),
        hidden_without=("offsets", "requests"),
        remedy="Forget the offsets of a partition when it is revoked or lost, and never commit a lower offset "
        "than before.",
    ),
    FindingKind(
        "acknowledged-commit-missing",
        "The client reported a successful commit that the offsets topic does not hold.",
        ("commits",),
        _evidence("offsets", "requests", own=("events",)),
        hidden_without=("offsets", "requests"),
        unreported=COMMITS,
    ),
    FindingKind(
        "silent-commit-failure",
        "The last attempt of a commit was refused, and the client reported success.",
        ("commits",),
        _evidence("offsets", "requests", own=("events",)),
        hidden_without=("offsets", "requests"),
        unreported=COMMITS,
    ),
    FindingKind(
        "work-after-fencing",
        "The coordinator fenced the member's commit, and the member continued to process records of the partition.",
        ("commits",),
        _evidence("plan", "offsets", "host", "requests", own=("events", "delivered")),
        unreported=PROCESSING,
        former="fenced-and-carried-on",
        remedy="When a commit fails because the member left the group, drop the records in hand and poll again: "
        "another member has them.",
    ),
    FindingKind(
        "foreign-commit",
        "A commit was accepted for a partition that the coordinator had assigned to another member.",
        ("commits", "outside"),
        _evidence("events", "offsets", "requests"),
        hidden_without=("offsets", "requests"),
        remedy="Commit only partitions that are assigned to the consumer that commits.",
    ),
    FindingKind(
        "zombie-commit",
        "A commit of a former owner was accepted after the partition had a new owner.",
        ("commits", "outside"),
        _evidence("events", "offsets", "requests"),
        hidden_without=("offsets", "requests"),
        remedy="Forget the records and offsets of a partition in the revoked and lost callbacks, so that nothing "
        "of it is committed later.",
    ),
    FindingKind(
        "wrong-start",
        "The first record of an assignment is not the one that the committed offset points at.",
        ("commits",),
        _evidence("log", "offsets", "requests", own=("events", "delivered")),
        hidden_without=("requests",),
        unreported=DELIVERIES,
    ),
    FindingKind(
        "off-by-one",
        "The group commits the last finished offset instead of the next one to read.",
        ("commits",),
        _evidence("log", "events", "delivered", "offsets"),
        unreported=PROCESSING,
        remedy="Commit the offset of the next record to read: that of the last processed record plus one.",
    ),
    FindingKind(
        "redelivery-below-commit",
        "A record was processed again although the new owner's committed start lay above it.",
        ("delivery",),
        _evidence("offsets", "requests", own=("events", "delivered")),
        unreported=DELIVERIES,
        remedy="Begin an assignment at the committed offset: do not keep positions from an earlier assignment.",
    ),
    FindingKind(
        "redelivery-loop",
        "The same offsets are delivered over and over, and the committed offset does not advance.",
        ("delivery",),
        _evidence("plan", "events", "offsets", own=("delivered",)),
        unreported=DELIVERIES,
        remedy="A record that fails again and again stops its partition: write it to a dead-letter topic after "
        "some attempts, and continue.",
    ),
    FindingKind(
        "rewind",
        "Within one assignment, a record was delivered at or below an earlier offset.",
        ("delivery",),
        _evidence(own=("events", "delivered")),
        unreported=DELIVERIES,
        jepsen="nonmonotonic-poll",
        jepsen_in_poll="int-nonmonotonic-poll",
        remedy="Do not move the position back inside an assignment, unless the records in between are meant to "
        "be processed again.",
    ),
    FindingKind(
        "poll-skip",
        "Within one assignment, the deliveries jumped over a record that is visible in the log.",
        ("order",),
        _evidence("log", own=("events", "delivered")),
        unreported=DELIVERIES,
        jepsen="poll-skip",
        jepsen_in_poll="int-poll-skip",
        remedy="Do not move the position past records that were not processed.",
    ),
    FindingKind(
        "key-order",
        "Processing of a record began before an earlier record of its key was first finished.",
        ("order",),
        _evidence("delivered", own=("events",)),
        unreported=PROCESSING,
        hidden_by_effects=ALWAYS,
    ),
    FindingKind(
        "per-entity-order",
        "A record was processed although an earlier one of its key had a dead letter that was not "
        "retried yet, or was re-queued behind it.",
        ("parked", "requeued"),
        _evidence("log", "effects", own=("events", "delivered")),
        unreported=EFFECTS,
    ),
    FindingKind(
        "stale-effect",
        "A former owner finished a record after a later owner had finished it: the former owner's effect is the last.",
        ("order", "ownership"),
        _evidence(own=("events", "delivered")),
        unreported=PROCESSING,
        hidden_by_effects=ALWAYS,
    ),
    FindingKind(
        "nonmonotonic-send",
        "Records of one producer and partition landed in another order than they were sent.",
        ("order", "outside"),
        _evidence("log", own=("events",)),
        jepsen="nonmonotonic-send",
    ),
    FindingKind(
        "assignment-overlap",
        "Two members certainly owned one partition at the same time, by their own callbacks.",
        ("ownership",),
        _evidence("offsets", own=("events",)),
        unreported=CALLBACKS,
    ),
    FindingKind(
        "coordinator-overlap",
        "The coordinator's own records assign one partition to two members.",
        ("outside", "ownership"),
        _evidence("offsets"),
        hidden_without=("offsets",),
    ),
    FindingKind(
        "processing-overlap",
        "Two members were certainly processing records of one partition at the same time.",
        ("ownership",),
        _evidence(own=("events", "delivered")),
        unreported=PROCESSING,
        hidden_by_effects=ALWAYS,
        remedy="Finish or drop the records of a partition in the revoked callback, before another member gets it.",
    ),
    FindingKind(
        "work-after-reassignment",
        "A former owner began to process records after the coordinator had reassigned the partition.",
        ("ownership",),
        _evidence("offsets", own=("events", "delivered")),
        hidden_without=("offsets",),
        unreported=PROCESSING,
        hidden_by_effects=ALWAYS,
        sentence="{t.who} began to process {t.records} ({t.span}) although the coordinator had assigned {t.place} to "
        "{t.other}",
        former="stale-backlog",
    ),
    FindingKind(
        "processing-after-revocation",
        "Processing began after the member's own revocation callback had returned.",
        ("ownership",),
        _evidence(own=("events", "delivered")),
        unreported=PROCESSING,
        sentence="{t.who} began to process {t.records} ({t.span}) after its own {t.a.cause} callback for {t.place} "
        "had returned",
    ),
    FindingKind(
        "delivery-outside-assignment",
        "A poll returned a record of a partition that the member certainly does not own.",
        ("ownership",),
        _evidence(own=("events", "delivered")),
        unreported=DELIVERIES,
        sentence="{t.records} {t.were} delivered to {t.who} ({t.span}), which did not own the partition then",
    ),
    FindingKind(
        "assignment-mismatch",
        "While the group was stable, the callbacks that ran do not add up to the coordinator's assignment.",
        ("ownership",),
        _evidence("plan", "events", "offsets", "requests", "host"),
        hidden_without=("offsets", "requests"),
        unreported=CALLBACKS,
    ),
    FindingKind(
        "callback-imbalance",
        "A partition was assigned twice in a row, or revoked while it was not owned.",
        ("ownership",),
        _evidence(own=("events",)),
        unreported=CALLBACKS,
        former="callback-ledger",
    ),
    FindingKind(
        "early-assignment",
        "A partition was assigned before its former owner's revocation (eager: anyone's) returned.",
        ("ownership",),
        _evidence("offsets", "host", own=("events",)),
        hidden_without=("offsets",),
        unreported=CALLBACKS,
    ),
    FindingKind(
        "needless-revocation",
        "A partition was revoked from a member and assigned to it again, and no change of the group explains it.",
        ("ownership",),
        _evidence("events", "offsets", "metadata", "requests"),
        hidden_without=("offsets",),
        unreported=CALLBACKS,
    ),
    FindingKind(
        "lost-reported-as-revoked",
        "The member was fenced before its callback began, and the callback said revoked instead of lost.",
        ("ownership",),
        _evidence(own=("events",)),
        severity="note",  # the client may have begun the revocation before the answer arrived
        unreported=CALLBACKS,
        sentence="{t.who} knew at {t.begin} that it was fenced ({t.a.cause}), and its callback said at {t.end} that "
        "{t.place} was revoked, not lost",
        former="lost-told-as-revoked",
    ),
    FindingKind(
        "duplicate-instance",
        "Two live members with one static id both stayed in the group.",
        ("outside", "ownership"),
        _evidence("requests", own=("events",)),
        hidden_without=("requests",),
        sentence="{t.who} and {t.other} have one static id, and the coordinator accepted requests of both, {t.span}: "
        "the older one was not fenced",
    ),
    FindingKind(
        "generation-regression",
        "The group's generation or a member's epoch went back.",
        ("outside", "ownership"),
        _evidence("offsets"),
        hidden_without=("offsets",),
    ),
    FindingKind(
        "stuck-partition",
        "A partition has an owner and waiting records, and nothing was delivered beyond the bound.",
        ("outside", "progress"),
        _evidence(*OF_PROGRESS, "produced", "metadata"),
        liveness=True,
        remedy="Look for a pause without a resume, a thread that died, or a poll that waits for work of its own.",
    ),
    FindingKind(
        "orphaned-partition",
        "The group is stable, and no member owns the partition.",
        ("outside", "progress"),
        _evidence("events", "offsets", "metadata", "host"),
        hidden_without=("offsets",),
        liveness=True,
    ),
    FindingKind(
        "stuck-member",
        "A member owns partitions and sends heartbeats, but neither polls nor processes records.",
        ("progress",),
        _evidence("plan", "host", own=("events", "delivered")),
        hidden_without=("requests",),
        liveness=True,
        unreported=POLLS,
        remedy="Poll from a loop that nothing can block for longer than max.poll.interval.ms, and end the "
        "process when its worker dies.",
    ),
    FindingKind(
        "dead-member",
        "A member ended, or its client stopped with an error that is final, without a fault that explains it.",
        ("outside", "progress"),
        _evidence("plan", own=("events",)),
        liveness=True,
        remedy="The program ended by itself: look at its log. Errors of a commit or a rebalance are no reason to end.",
    ),
    FindingKind(
        "hung-shutdown",
        "A member was asked to end, and its process lived on beyond the bound.",
        ("outside", "progress"),
        _evidence("plan", "host", own=("events",)),
        liveness=True,
        remedy="Leave the poll loop when SIGTERM arrives, bound every wait of the end (threads, queues, commits, "
        "close), and let no thread that is not a daemon live on.",
    ),
    FindingKind(
        "never-stable",
        "The group did not become stable within its bound.",
        ("outside", "progress"),
        _evidence("events", "offsets", "host"),
        hidden_without=("offsets",),
        liveness=True,
        remedy="Keep each poll well below max.poll.interval.ms: fewer records in a poll (max.poll.records), or a "
        "worker thread.",
    ),
    FindingKind(
        "unconsumed",
        "Visible records were left in the log after the drain.",
        ("outside", "progress"),
        _evidence(*OF_PROGRESS),
        liveness=True,
        jepsen="unseen",
        remedy="Look for a member that no longer polls, a pause without a resume, or a commit that is tried for ever.",
    ),
    FindingKind(
        "slow-recovery",
        "The group took longer to recover after the heal than was promised.",
        ("outside", "progress", "recovers"),
        _evidence(*OF_PROGRESS, "produced", "metadata"),
        liveness=True,
        remedy="Shorten session.timeout.ms, close the consumer when the program ends, and leave the revoked "
        "callback soon.",
    ),
    FindingKind(
        "slow-catch-up",
        "After a fault, records of the partition waited for longer than normal beyond the promised time.",
        ("recovers",),
        _evidence(*OF_PROGRESS, "produced", "metadata"),
        liveness=True,
        unreported=DELIVERIES,
        remedy="The members need more throughput than the load: more of them (and partitions), larger batches, or less "
        "work for each record.",
    ),
    FindingKind(
        "too-many-duplicates",
        "After a fault, more records were processed again than was promised.",
        ("recovers",),
        _evidence("plan", "events", "delivered"),
        unreported=PROCESSING,
        hidden_by_effects=ALWAYS,
        sentence="after {t.a.cause}, {t.records} {t.were} processed again that {t.who} had processed ({t.span}); in "
        "all partitions together that is more than was promised",
        remedy="Commit more often, and when the program ends or a partition is revoked.",
    ),
    FindingKind(
        "collateral-stall",
        "A partition that a fault did not touch stood still during the fault.",
        ("outside", "progress"),
        _evidence(*OF_PROGRESS, "produced", "requests", "metadata"),
        liveness=True,
        former="collateral-stop",
    ),
    FindingKind(
        "duplicate-write",
        "One send call is in the log at two offsets.",
        ("delivery", "outside"),
        _evidence("log", own=("events",)),
        jepsen="duplicate",
    ),
    FindingKind(
        "redelivery",
        "A record was finished again after its partition changed hands, before its offset was committed.",
        ("delivery",),
        _evidence("offsets", own=("events", "delivered")),
        unreported=DELIVERIES,
        hidden_by_effects=AT_MOST_ONCE,
    ),
    FindingKind(
        "avoidable-redelivery",
        "A record was finished again although the former owner released its partition cleanly.",
        ("delivery",),
        _evidence("offsets", own=("events", "delivered")),
        hidden_without=("offsets",),
        unreported=DELIVERIES,
        advice="that had been processed were delivered again, although the partition was released cleanly. "
        "Commit finished records in the revoked callback, and before the consumer is closed.",
    ),
    FindingKind(
        "dead-letter-twice",
        "A record that cannot be processed has two dead letters.",
        ("parked",),
        _evidence("offsets", own=("events",)),
        unreported=EFFECTS,
    ),
    FindingKind(
        "dead-letter-missing",
        "The group committed past a record that cannot be processed and has no dead letter.",
        ("parked",),
        _evidence("log", "events", "delivered", "offsets", "effects"),
        hidden_without=("offsets",),
        unreported=EFFECTS,
    ),
    FindingKind(
        "requeue-twice",
        "A record that was re-queued is in the log again more than once.",
        ("requeued",),
        _evidence("offsets", own=("events",)),
        unreported=EFFECTS,
    ),
    FindingKind(
        "requeued-and-done",
        "A record was re-queued, and processed as well: its effect happens twice.",
        ("requeued",),
        _evidence(own=("events", "delivered")),
        unreported=EFFECTS,
    ),
    FindingKind(
        "rebalance-on-static-bounce",
        "A static member returned within its session time-out, and the group rebalanced anyway.",
        ("rebalances",),
        _evidence("plan", "events", "offsets", "requests", "metadata"),
        hidden_without=("offsets",),
        sentence="{t.who} returned under its static id as {t.other}, {t.span}, and the group rebalanced anyway",
    ),
    FindingKind(
        "long-pause",
        "A rebalance stopped a partition for longer than the promised bound.",
        ("rebalances",),
        _evidence("plan", "events", "host"),
        needs_of_black_boxes=_evidence("plan", "offsets", "requests", "host"),
        liveness=True,
    ),
    FindingKind(
        "unbalanced",
        "While the group was stable, a member had at least two partitions more than another member.",
        ("rebalances",),
        _evidence("events", "offsets", "requests"),
        hidden_without=("offsets",),
    ),
    FindingKind(
        "not-sticky",
        "More partitions were moved away from members that stayed than an even share requires.",
        ("rebalances",),
        _evidence("events", "offsets", "requests"),
        hidden_without=("offsets",),
    ),
    FindingKind(
        "unproven-fault",
        "Nothing proves that a step of the plan began or was healed, or the step did not have its expected effect.",
        ("faults",),
    ),
    FindingKind(
        "fault-not-applicable",
        "A step of the plan that is not required found nothing to hit.",
        ("faults",),
    ),
    FindingKind(
        "damaged-file",
        "A file of the run folder is missing or damaged; checks that need it cannot be judged.",
        ("history",),
    ),
    FindingKind(
        "history-incomplete",
        "The recorded history has a hole or a torn record; checks that need it cannot be judged.",
        ("history",),
    ),
    FindingKind(
        "unrecorded-delivery",
        "A member must have received the record, but its history does not contain the delivery.",
        ("history",),
    ),
)
FINDINGS: Mapping[str, FindingKind] = MappingProxyType({kind.name: kind for kind in _KINDS})
FORMER: Mapping[str, str] = MappingProxyType({kind.former: kind.name for kind in _KINDS if kind.former})


def kinds_of(check: str) -> dict[str, str]:
    """The kinds that a promise (or another check) covers, each with ``safety`` or ``liveness``."""
    return {kind.name: "liveness" if kind.liveness else "safety" for kind in _KINDS if check in kind.checks}


def usual_severity(kind: str, excuse: str) -> str:
    """The severity of an anomaly where the promise sets no other: permitted if it has an excuse."""
    return "permitted" if excuse else FINDINGS[kind].severity


def renamed(kinds: Iterable[str]) -> dict[str, str]:
    """The former names among ``kinds``, each with its current name; logs a warning for each."""
    found = {kind: FORMER[kind] for kind in sorted({*kinds} & FORMER.keys())}
    for former, today in found.items():
        _LOG.warning("the kind of finding %r is now called %r: use the new name", former, today)
    return found
