"""The drain of a run: what was written is to be processed, and then the members end."""

from __future__ import annotations

import sys

from fencepost.evidence.committed import visible_ends
from fencepost.evidence.program_effects import ProgramEffects
from fencepost.group.running_group import Group
from fencepost.interfaces import Cluster
from fencepost.model import TopicPartition
from fencepost.runner.phases import Phases
from fencepost.scenario.run_topics import Topics
from fencepost.scenario.scenario import Scenario

STOP_S = 30.0


def drain(
    scenario: Scenario,
    group: Group,
    cluster: Cluster,
    topics: Topics,
    name: str,
    phases: Phases,
    effects: ProgramEffects,
) -> None:
    """Producers stop; the group gets the time to commit everything that was written, and as long again for the effects
    of that where those tell what is processed; then it ends cleanly.

    A group that does not manage is no error here: the judge finds what it left. ``name``: ``group.id``.

    Raises:
        FencepostError: nobody could be asked what the group committed, so it is not known whether it managed.
    """
    group.stop_producers(STOP_S)
    ends: dict[TopicPartition, int] = {}
    most: dict[TopicPartition, int] = {}  # of a topic that was made again, what is committed may be that of before

    def caught_up() -> bool:
        committed = cluster.admin.committed(name)
        if not ends or topics.requeued:  # what is committed as re-queued lies before the ends that come now
            found = {topic: cluster.admin.end_offsets(topic) for topic in topics.by_name}
            told = {TopicPartition(topic, p): end for topic in found for p, end in found[topic].items()}
            remade = topics.remade(cluster.admin)
            most.update((tp, end) for tp, end in told.items() if tp.topic in remade)
            transactions = scenario.workload.producer_config().get("transaction_records")
            ends.update(visible_ends(cluster, told) if transactions or topics.requeued else told)
        return all(end <= committed.get(tp, 0) <= most.get(tp, sys.maxsize) for tp, end in ends.items())

    phases.came(caught_up, scenario.drain_s, "the group to commit everything that was written")
    written = group.progress().acknowledged
    if not phases.came(lambda: effects.there(written), scenario.drain_s, "an effect of every record"):
        phases.say(f"an effect of every record was awaited for {scenario.drain_s:g} s: {effects.state}")
    group.stop_members(STOP_S)
