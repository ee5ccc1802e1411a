"""The planted bugs: under which plan each is looked for, in whom it is, and exactly the kinds that it turns red.

Reading this needs no cluster; ``test_planted_bugs`` performs it. ``by_kind`` says which bugs show a kind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.checkers import Commits, Delivery, Order, Ownership, Progress
from fencepost.faults import Bounce, Kill
from fencepost.scenario import Group, Scenario, Topic
from fencepost.schedule import at
from fencepost.targets import member
from fencepost.workloads import PollLoop

SUSPECT = 1
ALL = (0, 1, 2)
SESSION = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
PROMISES = (Delivery("at-least-once"), Order(by="key"), Ownership(of="processing"), Progress(within_s=30), Commits())

# Others come back and take partitions over, and nobody is paused: a correct member keeps even the strictest promise.
MOVES = Scenario(
    name="partitions move",
    topics=[Topic("orders", partitions=6)],
    group=Group(members=3, config=SESSION),
    workload=PollLoop(rate_hz=1000, batch=100, keys=60),
    schedule=[at(1, Bounce(), member(0), heal_after=1)],
    promises=PROMISES,
    min_records=11_000,
    chaos_s=90,  # a ceiling that only a slow machine comes near
)

# Slow handlers keep the victim in the middle of a poll's records nearly all the time.
DEATH = replace(
    MOVES,
    name="a member dies at work",
    workload=PollLoop(rate_hz=600, batch=100, handler_ms=4),
    schedule=[at(2, Kill(), member(SUSPECT), heal_after=1)],
    min_records=3_000,
)


# No fault that could be to blame, and a bound shorter than the time in which the bug stands still.
STANDS = replace(
    MOVES,
    name="nothing happens",
    schedule=(),
    promises=(*PROMISES[:3], Progress(within_s=8), *PROMISES[4:]),
    min_records=6_000,
)


@dataclass(frozen=True)
class Bug:
    """A bug that is planted.

    Attributes:
        plan: where it is looked for; correct members keep their promises there.
        kinds: exactly what it turns red.
        workload: the options that make members wrong, if it is a bug of theirs.
        planted_in: who has it, and is blamed for it.
        may_follow: kinds that come of it or not, as the timing has it.
        promises: what is promised instead of what the plan promises, where that is the bug, or another one's matter.
    """

    plan: Scenario
    kinds: Collection[str]
    workload: Mapping[str, Any] = field(default_factory=dict)
    planted_in: tuple[int, ...] = (SUSPECT,)
    may_follow: Collection[str] = ()
    promises: tuple[Any, ...] = ()

    def scenario(self, protocol: str) -> Scenario:
        """The plan with the bug in it."""
        changed = {**self.workload, "planted_in": self.planted_in} if "planted_bug" in self.workload else self.workload
        workload = replace(self.plan.workload, **changed)
        return under(protocol, replace(self.plan, workload=workload, promises=self.promises or self.plan.promises))


def under(protocol: str, scenario: Scenario) -> Scenario:
    """A scenario with another protocol of the group."""
    return replace(scenario, group=replace(scenario.group, protocol=protocol))


def of_member(name: str) -> dict[str, str]:
    """The options that plant a bug of ``fencepost_member.planted``."""
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
    "off-by-one": Bug(MOVES, {"off-by-one"}, of_member("off-by-one"), planted_in=ALL),
    "commit-ahead": Bug(MOVES, {"commit-ahead"}, of_member("commit-ahead")),
    # Offsets that are old as well as another's: the group goes back, until the owner commits again.
    "foreign-commit": Bug(MOVES, {"foreign-commit", "commit-regression"}, of_member("foreign-commit")),
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
    "stop-polling": Bug(STANDS, {"stuck-member", "stuck-partition"}, of_member("stop-polling")),
}


def by_kind() -> dict[str, list[str]]:
    """Kind of finding -> the bugs that show it."""
    kinds = sorted({kind for bug in BUGS.values() for kind in bug.kinds})
    return {kind: [name for name, bug in BUGS.items() if kind in bug.kinds] for kind in kinds}


# Kinds that no bug shows yet, and why. The table of claims has an empty cell for these, and for no others.
UNPLANTED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "acknowledged-commit-missing",
            "assignment-mismatch",
            "assignment-overlap",
            "avoidable-redelivery",
            "callback-ledger",
            "commit-beyond-end",
            "delivered-then-lost",
            "delivery-outside-assignment",
            "duplicate-instance",
            "early-assignment",
            "fenced-and-carried-on",
            "history-incomplete",
            "inconsistent-offsets",
            "lost-told-as-revoked",
            "lost-write",
            "needless-revocation",
            "never-stable",
            "orphaned-partition",
            "phantom",
            "poll-skip",
            "processing-overlap",
            "redelivery",
            "redelivery-loop",
            "silent-commit-failure",
            "stale-backlog",
            "stuck-partition",
            "unconsumed",
        ),
        "its bug is yet to be written",
    ),
    **dict.fromkeys(
        ("collateral-stop", "duplicate-write", "nonmonotonic-send", "slow-recovery", "stuck-member"),
        "its rule is new, and its bug yet to be written",
    ),
    **dict.fromkeys(
        ("coordinator-overlap", "generation-regression"),
        "only a broker can do that: a real run that was doctored has to show it",
    ),
}
if stale := UNPLANTED.keys() & by_kind().keys():
    raise LookupError(f"found {sorted(stale)} in BUGS and in UNPLANTED, use BUGS alone")
