"""The drain of a run: the group processes what was written, and then the members end."""

from __future__ import annotations

import sys

from fencepost.evidence.committed_reader import visible_ends
from fencepost.evidence.program_effects import ProgramEffects
from fencepost.group.running_group import RunningGroup
from fencepost.interfaces import Cluster
from fencepost.model import TopicPartition
from fencepost.runner.phases import Phases
from fencepost.scenario.run_topics import RunTopics
from fencepost.scenario.scenario import Scenario

STOP_S = 20.0  # longer than the bound of any promise


def drain(
    scenario: Scenario,
    group: RunningGroup,
    cluster: Cluster,
    topics: RunTopics,
    name: str,
    phases: Phases,
    effects: ProgramEffects,
) -> None:
    """Stop the producers, wait up to ``drain_s`` until the group has committed everything that was written, and stop
    the members cleanly. If effects show what is processed, wait as long again for an effect of every record.

    A group that does not commit everything raises no error here: the judge finds the rest. ``name``: ``group.id``.

    Raises:
        FencepostError: the group's commits could not be read, so it is unknown whether it committed everything.
    """
    group.stop_producers(STOP_S)
    ends: dict[TopicPartition, int] = {}
    most: dict[TopicPartition, int] = {}  # of a recreated topic, the committed offset may be from before its recreation

    def caught_up() -> bool:
        committed = cluster.admin.committed(name)
        if not ends or topics.requeued:  # re-queued records move the ends
            found = {topic: cluster.admin.end_offsets(topic) for topic in topics.by_name}
            logs = {TopicPartition(topic, p): end for topic in found for p, end in found[topic].items()}
            recreated = topics.recreated(cluster.admin)
            most.update((tp, end) for tp, end in logs.items() if tp.topic in recreated)
            transactions = scenario.workload.producer_config().get("transaction_records")
            ends.update(visible_ends(cluster, logs) if transactions or topics.requeued else logs)
        return all(end <= committed.get(tp, 0) <= most.get(tp, sys.maxsize) for tp, end in ends.items())

    phases.wait_or_give_up(caught_up, scenario.drain_s, "the group to commit everything that was written")
    written = group.progress().acknowledged
    if not phases.wait_or_give_up(lambda: effects.there(written), scenario.drain_s, "an effect of every record"):
        phases.show(f"waited {scenario.drain_s:g} s for an effect of every record: {effects.state}")
    group.stop_members(STOP_S)
