"""What one run calls its group and its topics in the cluster, which it may share with others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunNames:
    """The names of a run.

    Attributes:
        group: ``group.id``, with the prefix.
        prefix: what all its names begin with in the cluster, and not in the scenario; empty: the cluster is its own.
    """

    group: str
    prefix: str = ""

    def in_cluster(self, topic: str) -> str:
        """The name in the cluster of a topic of the scenario."""
        return self.prefix + topic

    def in_scenario(self, topic: str) -> str:
        """The inverse of ``in_cluster``."""
        return topic.removeprefix(self.prefix)
