"""The planted bugs: under which plan each is looked for, in whom it is, and exactly the kinds that it turns red.

Reading this needs no cluster; ``test_planted_bugs`` performs it. ``by_kind`` says which bugs show a kind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cluster.doctored import DOCTORED
from cluster.plans import (
    ABORTS,
    ALL,
    ASLEEP,
    ASYNCHRONOUS,
    AT_MOST_ONCE,
    AUTOMATIC,
    BOUNDED,
    BURSTS,
    CALM,
    CALM_FOR_LONG,
    CATCHES_UP,
    COMES_AGAIN,
    CRITICAL,
    DEATH,
    EVERYBODY,
    FROZEN,
    GIVES_UP_S,
    GROWS,
    HANDED_OVER,
    HOPELESS,
    HOPELESS_FOR_NOW,
    HOPELESS_KEYS,
    HOPELESS_ONCE,
    LATE_WRITES,
    LITTLE_TWICE,
    MOVES,
    NARROW,
    PEACEFUL_LETTERS,
    PEACEFUL_WRITES,
    PROMISES,
    RECOVERS,
    RETURNS,
    SIDE_BY_SIDE,
    SOON,
    STATIC,
    STORM_S,
    STRICT,
    SUSPECT,
    WATCHED,
    WRITTEN,
    ZOMBIE,
    under,
)
from fencepost.checkers import Commits, Requeued
from fencepost.model.settings import PROTOCOLS
from fencepost.scenario.scenario import Scenario


@dataclass(frozen=True)
class Bug:
    """A bug that is planted.

    Attributes:
        plan: where it is looked for; correct members keep their promises there.
        kinds: exactly what it turns red.
        workload: the options that make members wrong, if it is a bug of theirs.
        planted_in: who has it.
        blamed: whom the findings name first, if anybody, where that is not just who has it.
        may_follow: kinds that come of it or not, as the timing has it.
        notes: kinds that are shown and never break a promise.
        promises: what is promised instead of what the plan promises.
        protocols: under which it shows.
        control: those under which correct members keep the plan's promises.
        drain_s: how long the drain may take, where the group never gets done.
        act: what somebody does to the cluster during the run; see ``test_planted_bugs``.
    """

    plan: Scenario
    kinds: Collection[str]
    workload: Mapping[str, Any] = field(default_factory=dict)
    planted_in: tuple[int, ...] = (SUSPECT,)
    blamed: Collection[str] = ()
    may_follow: Collection[str] = ()
    notes: Collection[str] = ()
    promises: tuple[Any, ...] = ()
    protocols: Collection[str] = PROTOCOLS
    control: Collection[str] = PROTOCOLS
    drain_s: float = 60.0
    act: str = ""

    def scenario(self, protocol: str) -> Scenario:
        """The plan with the bug in it."""
        changed = {**self.workload, "planted_in": self.planted_in} if "planted_bug" in self.workload else self.workload
        workload, promises = replace(self.plan.workload, **changed), self.promises or self.plan.promises
        return under(protocol, replace(self.plan, workload=workload, promises=promises, drain_s=self.drain_s))

    @property
    def culprits(self) -> set[str]:
        """Who may be named first by a finding."""
        return set(self.blamed) or {f"member-{member}" for member in self.planted_in}


def of_member(name: str) -> dict[str, str]:
    """The options that plant a bug of ``fencepost_member.planted_bugs``."""
    return {"planted_bug": name}


BUGS: Mapping[str, Bug] = {
    "seek-back": Bug(MOVES, {"rewind"}, of_member("seek-back")),
    "out-of-order": Bug(MOVES, {"key-order"}, of_member("out-of-order")),
    "stale-backlog": Bug(MOVES, {"processing-after-revocation", "stale-effect"}, of_member("stale-backlog")),
    "commit-before-processing": Bug(
        DEATH,
        {"unseen"},
        {"commit": "before-processing"},  # all do it; who dies loses by it
        promises=(*PROMISES[:-1], Commits(order="before-processing")),
    ),
    # The same without a line of code: clients store what polls return, and commit that by themselves. Who dies tells of
    # no such commit: whoever is the next to commit past what it had in hand is named.
    "auto-commit-ahead": Bug(
        AUTOMATIC,
        {"unseen"},
        {"commit": "auto-delivered"},
        promises=(*PROMISES[:-1], Commits(order="before-processing")),
        blamed=EVERYBODY,
    ),
    "late-retry": Bug(ASYNCHRONOUS, {"commit-regression"}, of_member("late-retry")),
    "off-by-one": Bug(MOVES, {"off-by-one"}, of_member("off-by-one"), drain_s=GIVES_UP_S, planted_in=ALL),
    "commit-ahead": Bug(MOVES, {"commit-ahead"}, of_member("commit-ahead")),
    # Offsets that are old as well as another's: the group goes back, until the owner commits again. Who joins first may
    # own everything at first, and then nothing is foreign to it: only one of two can be that one.
    "foreign-commit": Bug(
        MOVES, {"foreign-commit", "commit-regression"}, of_member("foreign-commit"), planted_in=(SUSPECT, 2)
    ),
    "late-commit": Bug(MOVES, {"zombie-commit", "commit-regression"}, of_member("late-commit")),
    # A little below the committed offset: what was done is done again. Who begins too low commits what it did again;
    # whether in time to take the group back depends on when it commits.
    "wrong-start": Bug(
        MOVES,
        {"wrong-start", "redelivery-below-commit"},
        of_member("wrong-start"),
        may_follow={"commit-regression"},
    ),
    "die-silently": Bug(MOVES, {"dead-member"}, of_member("die-silently")),
    "never-ends": Bug(CALM, {"hung-shutdown"}, of_member("never-ends")),
    "stop-polling": Bug(CALM_FOR_LONG, {"stuck-member", "stuck-partition"}, of_member("stop-polling")),
    # It stops while another one is frozen, and goes on soon after that. An eager group may stop as a whole.
    "stop-polling-beside": Bug(
        FROZEN, {"collateral-stall"}, of_member("stop-polling"), protocols=("cooperative", "consumer")
    ),
    "slow-start": Bug(RECOVERS, {"slow-recovery"}, of_member("slow-start"), planted_in=ALL),
    "slow-start-after-a-fault": Bug(CATCHES_UP, {"slow-catch-up"}, of_member("slow-start"), planted_in=ALL),
    "commits-too-seldom": Bug(LITTLE_TWICE, {"too-many-duplicates"}, {"commit_every_ms": 15_000}, blamed=EVERYBODY),
    "commit-beyond-end": Bug(
        CALM,
        {"commit-beyond-end", "commit-ahead", "commit-regression"},  # and back again
        of_member("commit-beyond-end"),
    ),
    "no-final-commit": Bug(
        MOVES,
        {"avoidable-redelivery"},
        {**of_member("no-final-commit"), "commit_every_ms": 3000},
        promises=(STRICT, *PROMISES[1:]),
    ),
    "once-lost": Bug(RETURNS, {"commit-regression"}, of_member("once-lost")),
    "commit-after-processing": Bug(
        AT_MOST_ONCE,
        {"redelivery"},
        {"commit": "after-processing"},  # all do it; of who dies, some is done twice
    ),
    "auto-commit-behind": Bug(AT_MOST_ONCE, {"redelivery"}, {"commit": "auto"}),  # likewise
    "seek-loop": Bug(CALM, {"redelivery-loop", "rewind"}, of_member("seek-loop")),
    # With the consumer protocol this library's client leaves the group only when its program polls again.
    "hung-handler": Bug(
        BOUNDED,
        {"work-after-reassignment", "processing-overlap"},
        of_member("hung-handler"),
        protocols=("eager", "cooperative"),
    ),
    # That nobody changes its subscription is what every plan says, so some partitions are taken "needlessly".
    "forgotten-topic": Bug(
        CALM,
        {"orphaned-partition", "stuck-partition", "unconsumed"},
        of_member("forgotten-topic"),
        drain_s=GIVES_UP_S,
        planted_in=ALL,
        blamed=EVERYBODY,
        may_follow={"needless-revocation"},
    ),
    "restless": Bug(
        CALM_FOR_LONG,
        {"never-stable"},
        of_member("restless"),
        blamed=EVERYBODY,  # that is who was in the last round
        may_follow={"needless-revocation"},
    ),
    # No code of ours: a poll brings more than can be done until the next one is due. Who is put out for that is refused
    # its commit, comes back, and is given the same again.
    "poll-interval-storm": Bug(
        BURSTS,
        {"never-stable", "redelivery-loop", "unconsumed"},
        {"batch": 240},
        protocols=("eager", "cooperative"),  # see hung-handler
        blamed=EVERYBODY,
        may_follow={"stuck-partition"},
        drain_s=STORM_S,
    ),
    "lost-record": Bug(CALM, {"poll-skip", "unseen", "commit-ahead"}, of_member("lost-record")),
    # Who does again what was in hand gets the right content, and is named first: it came second.
    "torn-value": Bug(DEATH, {"phantom", "inconsistent-offsets"}, of_member("torn-value"), blamed=EVERYBODY),
    "reads-uncommitted": Bug(ABORTS, {"aborted-read"}, of_member("reads-uncommitted")),
    "late-record": Bug(MOVES, {"delivery-outside-assignment", "redelivery-below-commit"}, of_member("late-record")),
    # In the end members leave one after the other: who has the partition for that moment is its last owner.
    "paused-for-ever": Bug(
        CALM, {"stuck-partition", "unconsumed"}, of_member("paused-for-ever"), drain_s=GIVES_UP_S, blamed=EVERYBODY
    ),
    "unsent-commit": Bug(CALM, {"acknowledged-commit-missing"}, of_member("unsent-commit")),
    "swallowed-refusal": Bug(CALM, {"silent-commit-failure"}, of_member("swallowed-refusal")),
    "ignored-fence": Bug(CALM, {"work-after-fencing"}, of_member("ignored-fence")),
    # What it tells of the generation before, it still tells while others are assigned partitions of the next one.
    "still-owner": Bug(MOVES, {"assignment-overlap"}, of_member("still-owner"), may_follow={"early-assignment"}),
    # Only an eager client of this library goes on while its program is in a callback.
    "slow-revocation": Bug(MOVES, {"early-assignment"}, of_member("slow-revocation"), protocols=("eager",)),
    # Who waits for it has given up everything, under this protocol alone.
    "hung-revocation": Bug(SOON, {"long-pause"}, of_member("hung-revocation"), blamed=EVERYBODY, protocols=("eager",)),
    "forgotten-name": Bug(
        STATIC, {"rebalance-on-static-bounce"}, of_member("forgotten-name"), planted_in=ALL, blamed=EVERYBODY
    ),
    "told-twice": Bug(MOVES, {"callback-imbalance"}, of_member("told-twice")),
    "taken-for-nothing": Bug(
        CALM, {"needless-revocation"}, of_member("taken-for-nothing"), protocols=("cooperative", "consumer")
    ),
    "taken-for-good": Bug(
        CALM,
        {"assignment-mismatch", "stuck-partition", "unconsumed"},
        of_member("taken-for-good"),
        drain_s=GIVES_UP_S,
        blamed=EVERYBODY,
    ),
    "unawaited-workers": Bug(
        HANDED_OVER,
        {"processing-after-revocation"},
        of_member("unawaited-workers"),
        planted_in=ALL,
        may_follow={"processing-overlap", "stale-effect"},  # where the next owner comes soon enough
    ),
    # No code of ours: locks that keep nobody out who stood still, and no lock at all.
    "offsets-first": Bug(
        WRITTEN,
        {"missing-effect"},
        of_member("offsets-first"),
        planted_in=ALL,
        may_follow={"duplicate-effect"},  # where the offsets are refused, and the transaction is not
    ),
    "offsets-later": Bug(WRITTEN, {"duplicate-effect"}, of_member("offsets-later"), planted_in=ALL),
    "swallowed-errors": Bug(PEACEFUL_LETTERS, {"dead-letter-missing"}, of_member("swallowed-errors")),
    "letter-per-attempt": Bug(PEACEFUL_LETTERS, {"dead-letter-twice"}, of_member("letter-per-attempt")),
    "unwritten-letters": Bug(HOPELESS, {"dead-letter-missing"}, of_member("unwritten-letters")),
    "forgotten-keys": Bug(HOPELESS_KEYS, {"per-entity-order"}, of_member("forgotten-keys"), planted_in=ALL),
    "forgotten-redirects": Bug(HOPELESS_FOR_NOW, {"per-entity-order"}, of_member("forgotten-keys"), planted_in=ALL),
    "first-retried": Bug(HOPELESS_FOR_NOW, {"per-entity-order"}, of_member("first-retried")),
    "letters-without-order": Bug(HOPELESS_KEYS, {"per-entity-order"}, {"keep_order": False}, blamed=EVERYBODY),
    # No code of ours: letters and offsets apart, where it is promised that nothing comes twice.
    "letters-apart": Bug(
        HOPELESS_ONCE,
        {"dead-letter-twice"},
        {"commit": "after-processing", "commit_every_ms": 5000},
        blamed=EVERYBODY,
    ),
    # Nor here: what cannot be processed ends whoever gets it.
    "stop-on-poison": Bug(
        PEACEFUL_LETTERS,
        {"dead-member"},
        {"on_failure": "stop", "poison_every": 3000},  # the first one when all are warm
        planted_in=ALL,
        promises=PROMISES,
        may_follow={"stuck-partition", "unconsumed", "orphaned-partition", "redelivery-loop", "never-stable"},
        drain_s=GIVES_UP_S,
        blamed=EVERYBODY,
    ),
    "unwritten-copies": Bug(COMES_AGAIN, {"requeue-missing"}, of_member("unwritten-copies")),
    "copied-twice": Bug(COMES_AGAIN, {"requeue-twice"}, of_member("copied-twice")),
    "copied-and-done": Bug(COMES_AGAIN, {"requeued-and-done"}, of_member("copied-and-done")),
    # No code of ours: who re-queues gives up the order of keys.
    "order-of-what-comes-again": Bug(
        COMES_AGAIN,
        {"per-entity-order"},
        promises=(*COMES_AGAIN.promises[:-1], Requeued("at-least-once", in_order=True)),
        blamed=EVERYBODY,
    ),
    # Who came second did no wrong.
    "unfenced-offsets": Bug(
        LATE_WRITES,
        {"duplicate-effect"},
        of_member("unfenced-offsets"),
        blamed=EVERYBODY,
        may_follow={"commit-regression"},
    ),
    # The broker fences whoever had the id before.
    "shared-transactional-id": Bug(
        PEACEFUL_WRITES, {"dead-member"}, of_member("shared-transactional-id"), blamed=("member-0",)
    ),
    "lock-without-token": Bug(CRITICAL, {"duplicate-effect", "stale-write"}, {"fence": "lease"}),
    "lock-under-a-pause": Bug(
        ASLEEP, {"duplicate-effect", "stale-write"}, {"fence": "lease"}, protocols=("eager", "cooperative")
    ),
    "late-supervisor": Bug(WATCHED, {"duplicate-effect"}, {"overdue_ms": 60_000}),
    "no-lock": Bug(CRITICAL, {"duplicate-effect"}, {"fence": "none"}),
    "highest-finished": Bug(SIDE_BY_SIDE, {"commit-ahead", "unseen"}, of_member("highest-finished")),
    "lost-as-revoked": Bug(
        ZOMBIE, {"lost-reported-as-revoked"}, of_member("lost-as-revoked"), notes={"lost-reported-as-revoked"}
    ),
    # No code at all: the range assignor, which deals each topic by itself, and anew each time. Members in the order of
    # their ids get the first partitions of each topic, so anybody may be the one with most, or with least.
    "range-of-narrow-topics": Bug(
        NARROW, {"unbalanced"}, protocols=("eager",), control=("cooperative", "consumer"), blamed=EVERYBODY
    ),
    "range-anew": Bug(
        GROWS, {"not-sticky"}, protocols=("eager",), control=("cooperative", "consumer"), blamed=EVERYBODY
    ),
    # Not a member's: the topic was deleted, and made again without its records.
    "topic-made-anew": Bug(
        CALM, {"lost-write", "delivered-then-lost"}, blamed=("producer-0", *EVERYBODY), act="make topics anew"
    ),
    # Nor these: what a client or a broker would have to do is done by somebody who writes beside the producers.
    "write-again": Bug(CALM, {"duplicate-write"}, blamed=("producer-0",), act="write again"),
    "write-out-of-order": Bug(CALM, {"nonmonotonic-send"}, blamed=("producer-9",), act="write out of order"),
}


# Kinds that only a program's effects show: the test of a program with such a bug.
IN_PROGRAMS = {"effects-out-of-order": ["program: test_a_program_that_begins_at_the_end_of_a_batch_does_not"]}


def by_kind() -> dict[str, list[str]]:
    """Kind of finding -> the bugs that show it; or how the evidence of a real run was doctored for it."""
    shown = {
        kind: [name for name, bug in BUGS.items() if kind in bug.kinds] for bug in BUGS.values() for kind in bug.kinds
    }
    doctored = {kind: [f"doctored: {do.__name__.replace('_', ' ')}"] for kind, do in DOCTORED.items()}
    return dict(sorted({**doctored, **IN_PROGRAMS, **shown}.items()))
