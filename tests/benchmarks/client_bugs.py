"""Published bugs of released clients: is the affected release found out, and the mended one not accused?

    python tests/benchmarks/client_bugs.py [--only stuck] [--times 3] [--runs build/client-bugs]

Each case has a schedule of ordinary faults, promises that any group may make, and two releases of one client. No check
knows of a case. The affected release is to be ``invalid`` by one of the kinds that the case names; the control, under
the same plan, ``valid``. Prints what came of each run, and in the end a table in Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fencepost.checkers import Commits, Delivery, Progress
from fencepost.clusters import backends
from fencepost.faults import AddPartitions, Bounce, Latency, Pause, Refuse, ScaleOut
from fencepost.model import Severity, Validity, Verdict
from fencepost.model.topic import Topic
from fencepost.repeat.batch import RunOptions, perform
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import all_members, idle, member
from fencepost.workloads import PollLoop, WorkerPool

SESSION = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000}
BACKLOG = at(4, Pause(), member(0), heal_after=3)
PROMISES = [Delivery("at-least-once", duplicates="only-after-failure"), Commits(), Progress(within_s=8)]
ALONE = Group(members=1, protocol="eager", config=SESSION)


@dataclass(frozen=True)
class Case:
    """One published bug.

    Attributes:
        affected, control: releases of one client, as ``Group.client`` takes them.
        reference: where it was reported, and where it was mended.
        kinds: one of them at least breaks a promise of the affected release.
        scenario: its group's client is filled in.
    """

    affected: str
    control: str
    reference: str
    kinds: frozenset[str]
    scenario: Scenario

    def by(self, client: str) -> Scenario:
        """The scenario with members of that release."""
        return replace(self.scenario, group=replace(self.scenario.group, client=client))


def scenario(name: str, *schedule: object, **changes: object) -> Scenario:
    """A member alone, another one that faults may start, and promises that a program of a few lines can keep."""
    return replace(
        Scenario(
            name=name,
            topics=[Topic("orders", partitions=4)],
            group=Group(members=1, spare=1, protocol="eager", config=SESSION),
            workload=PollLoop(rate_hz=80, batch=50),
            schedule=schedule,
            promises=PROMISES,
            min_records=2400,
            chaos_s=60,
        ),
        **changes,
    )


FORGOTTEN = Case(  # by a member that goes on with what it gave up (release 2), or is put out of its group for good (3)
    "kafka-python==2.3.3",
    "kafka-python==2.0.6",
    "found here, in what dpkp/kafka-python#1438 took away (before it #1695)",
    frozenset({"redelivery", "stuck-partition", "slow-recovery"}),
    scenario(
        "a topic grows while a join takes longer than a poll",
        at(3, Latency(delay_ms=300, peers="coordinator"), all_members(), heal_after=8),
        at(5, AddPartitions()),
        group=Group(members=2, protocol="eager", config={**SESSION, "metadata.max.age.ms": 1000}),
        promises=[*PROMISES[:2], Progress(within_s=8, recovers_within_s=4)],
    ),
)

CASES = {
    "kept partitions get stuck": Case(
        "kafka-python==3.0.8",
        "kafka-python==3.0.9",
        "dpkp/kafka-python#3131, #3132",
        frozenset({"stuck-partition"}),
        scenario("a second member joins", at(5, ScaleOut(), idle(1))),
    ),
    "a fetcher dies": Case(
        "aiokafka==0.10.0",
        "aiokafka==0.11.0",
        "aio-libs/aiokafka#983, #1007",
        frozenset({"stuck-partition"}),
        scenario(
            "a second member joins while leaders refuse the first one",
            at(4, Refuse(peers="others"), member(0), heal_after=4),
            at(5, ScaleOut(), idle(1)),
        ),
    ),
    "backpressure loses records": Case(
        "kafka-python==2.0.2",
        "kafka-python==2.1.2",
        "dpkp/kafka-python#2011, #2555",
        frozenset({"unseen", "poll-skip"}),
        scenario(
            "a member that pauses has a backlog",
            BACKLOG,
            workload=PollLoop(rate_hz=80, batch=20, backpressure="pause", pause_ms=50),
            group=ALONE,
        ),
    ),
    "what is resumed stays away": Case(
        "kafka-python==3.0.12",
        "kafka-python==2.3.3",
        "found here, in what dpkp/kafka-python#2981 added",
        frozenset({"stuck-partition"}),
        scenario(
            "a member pauses what its threads have enough of",
            workload=WorkerPool(rate_hz=300, batch=40, workers=2, handler_ms=4, in_hand=5),
        ),
    ),
    "a join is forgotten by release 2": FORGOTTEN,
    "a join is forgotten by release 3": replace(FORGOTTEN, affected="kafka-python==3.0.12"),
    "resumed without a pause": Case(
        "confluent-kafka==2.3.0",
        "confluent-kafka==2.4.0",
        "confluentinc/librdkafka#4637, #4686",
        frozenset({"rewind", "redelivery-below-commit", "avoidable-redelivery"}),
        scenario(
            "a member that resumes all it owns has a backlog",
            BACKLOG,
            workload=PollLoop(rate_hz=80, batch=20, backpressure="resume"),
            group=ALONE,
        ),
    ),
    "a commit past the end": Case(
        "confluent-kafka==2.13.0",
        "confluent-kafka==2.13.2",
        "confluentinc/librdkafka#4844, #5213",
        frozenset({"commit-beyond-end", "unseen"}),
        scenario(
            "a member that is told of each partition's end comes back",
            at(5, Bounce(), member(0), heal_after=1),
            workload=PollLoop(rate_hz=80, batch=10, commit="auto-delivered"),
            group=replace(ALONE, config={**SESSION, "enable.partition.eof": True}),
            promises=[Delivery("at-least-once"), Commits(order="before-processing"), Progress(within_s=8)],
        ),
    ),
    "a slow answer resets the position": Case(
        "kafka-python==2.2.8",
        "kafka-python==2.2.9",
        "dpkp/kafka-python#2628, #2629",
        frozenset({"wrong-start", "redelivery-below-commit", "commit-regression"}),
        scenario(
            "a member comes back to a coordinator that answers late",
            at(4, Latency(delay_ms=500, peers="coordinator"), member(0), heal_after=12),
            at(6, Bounce(), member(0), heal_after=1),
        ),
    ),
    "a slow answer skips what was not read yet": Case(
        "kafka-python==2.2.8",
        "kafka-python==2.2.9",
        "dpkp/kafka-python#2628, #2629",
        frozenset({"unseen"}),
        scenario(
            "a member that begins at the end comes back to a coordinator that answers late",
            at(4, Latency(delay_ms=500, peers="coordinator"), member(0), heal_after=12),
            at(6, Bounce(), member(0), heal_after=1),
            group=Group(members=1, spare=1, protocol="eager", config={**SESSION, "auto.offset.reset": "latest"}),
        ),
    ),
}


def turns(asked: argparse.Namespace) -> Iterator[tuple[str, str, Verdict]]:
    """Every run of every case that was asked for, judged: (case, client, verdict)."""
    where = RunOptions(asked.runs, backends.named("local"), "local[2]")
    with where.judge() as spark:
        for name in asked.only or CASES:
            for client in (CASES[name].affected, CASES[name].control):
                for seed in range(1, asked.times + 1):
                    run = CASES[name].by(client)
                    folder, verdict = perform(run, run.plan(seed), where, spark)
                    assert verdict is not None
                    print(f"{name}: {client}, seed {seed}: {told(verdict)}  {folder}", flush=True)
                    yield name, client, verdict


def broken(verdict: Verdict) -> list[str]:
    """The kinds that break a promise."""
    found = (f for check in verdict.checks for f in check.findings if f.severity is Severity.VIOLATION)
    return list(dict.fromkeys(f.kind for f in found))


def told(verdict: Verdict) -> str:
    """``invalid: stuck-partition``."""
    return ": ".join(filter(None, (str(verdict.validity), ", ".join(broken(verdict)))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=CASES, help="one case; may be given again")
    parser.add_argument("--times", type=int, default=3, help="runs of each release")
    parser.add_argument("--runs", type=Path, default=Path("build/client-bugs"), help="where run folders are made")
    asked = parser.parse_args()
    verdicts = list(turns(asked))
    print("\n| case | release | runs as expected | what broke | reference |\n|---|---|---|---|---|")
    wrong = 0
    for name in asked.only or CASES:
        case = CASES[name]
        for client in (case.affected, case.control):
            mine = [verdict for one, by, verdict in verdicts if (one, by) == (name, client)]
            kinds = sorted({kind for verdict in mine for kind in broken(verdict)})
            red = client == case.affected
            good = sum(bool(case.kinds & {*broken(v)}) if red else v.validity is Validity.VALID for v in mine)
            wrong += len(mine) - good
            expected = "invalid" if red else "valid"
            print(f"| {name} | {client} | {good} of {len(mine)} {expected} | {', '.join(kinds)} | {case.reference} |")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
