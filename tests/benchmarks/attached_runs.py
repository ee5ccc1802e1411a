"""Correct groups under random faults on a cluster of another owner: is any of them accused?

    python tests/benchmarks/attached_runs.py [--runs 30] [--seed 1] [--folder build/attached-runs]

One cluster is started that all runs attach to as strangers: they see it through clients only. The groups take turns
(clients, protocols, static members), and each run draws its faults from its seed. Every verdict is printed, with the
kinds of findings that were not judged; exit code 1: a correct group was accused, 3: a verdict is unknown.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import cycle
from pathlib import Path

from in_turns import groups

from fencepost.clusters import local
from fencepost.clusters.attach.backend import Attachment
from fencepost.faults import (
    BlackHole,
    Bounce,
    CutConnections,
    Kill,
    Latency,
    MoveCoordinator,
    MoveLeaders,
    Pause,
    RateLimit,
    RemoveMember,
)
from fencepost.interfaces import ClusterSpec
from fencepost.model import Validity
from fencepost.model.topic import Topic
from fencepost.processes.owner import ProcessOwner
from fencepost.repeat.batch import RunOptions, perform
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.schedule.swarm import swarm
from fencepost.targets import one_member
from fencepost.workloads import PollLoop

CONFIG = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}
GROUPS = {
    **{f"confluent-kafka, {name}": group for name, group in groups(CONFIG).items()},
    "kafka-python, eager": Group(client="kafka-python", protocol="eager", config=CONFIG),
    "aiokafka, eager": Group(client="aiokafka", protocol="eager", config=CONFIG),
}
OF_MEMBERS = (Pause(), Kill(), Bounce(), BlackHole(), CutConnections(), Latency(), RateLimit(), RemoveMember())
OF_BROKERS = (MoveCoordinator(), MoveLeaders())  # which an administrator may do; nobody stops brokers of others


def scenario(name: str, group: Group) -> Scenario:
    """A correct group under some five faults."""
    faults = [*(at(0, fault, one_member()) for fault in OF_MEMBERS), *(at(0, fault) for fault in OF_BROKERS)]
    return Scenario(
        name=f"a guest: {name}",
        topics=[Topic("orders", partitions=6)],
        group=group,
        workload=PollLoop(rate_hz=300),
        schedule=[swarm(20, *faults, until_s=15, phase_s=15, quiet_s=1)],
        min_records=2000,
    )


def main() -> int:
    """Perform the runs; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the others follow")
    parser.add_argument("--folder", type=Path, default=Path("build/attached-runs"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    found: Counter[str] = Counter()
    with ProcessOwner.open() as owner:
        foreign = local.start(ClusterSpec(slots=1), owner)
        attached = Attachment.of("attach:" + foreign.bootstrap().split(",")[0])
        where = RunOptions(options.folder, attached, "local[2]")
        with where.judge() as spark:
            for seed, (name, group) in zip(range(options.seed, options.seed + options.runs), cycle(GROUPS.items())):
                asked = scenario(name, group)
                plan = asked.drawn(seed)
                folder, verdict = perform(asked, plan, where.once(), spark)
                assert verdict is not None
                found[verdict.validity] += 1
                steps = ", ".join(step.named for step in plan.steps)
                print(f"{name}, seed {seed}: {verdict.validity} under {steps}  {folder}", flush=True)
                for check in verdict.checks:
                    if check.validity is not Validity.VALID:
                        print(f"    {check.check}: {check.validity}: {check.reason}", flush=True)
                if seed == options.seed:
                    print(f"    not judged: {', '.join(sorted(verdict.unjudged)) or 'nothing'}", flush=True)
        foreign.stop()
    print(", ".join(f"{count} {validity}" for validity, count in sorted(found.items())))
    return 1 if found[Validity.INVALID] else 3 if found[Validity.UNKNOWN] else 0


if __name__ == "__main__":
    sys.exit(main())
