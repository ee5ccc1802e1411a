"""What runs left in a cluster of another owner because their machine was lost before it was removed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass

from fencepost.clusters.admin.cleaning import Cleaning
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.attach.cleanup import CLEAN_S
from fencepost.clusters.attach.examination import reach
from fencepost.errors import PlanError
from fencepost.model.endpoint import Endpoint


@dataclass(frozen=True)
class Leftover:
    """The topics and groups of one run.

    Attributes:
        prefix: begins their names.
        topics: the names of the topics.
        groups: the number of members of each group.
    """

    prefix: str
    topics: Collection[str]
    groups: Mapping[str, int]

    @property
    def in_use(self) -> bool:
        """Whether a group has members: the run is in progress, or their sessions are not over yet."""
        return any(self.groups.values())


def find(attachment: Attachment) -> list[Leftover]:
    """Everything in the cluster that has the prefix of a run, by run, whether the run is over or not.

    Raises:
        PlanError: the cluster may not be used; see ``examination.reach``.
        ClusterError: a broker does not answer.
        NotAuthorized: this user may not see a group.
    """
    return _runs(attachment, _brokers(attachment, "list", attachment.prefix_of_all))


def _brokers(attachment: Attachment, does: str, *prefixes: str) -> Mapping[int, Endpoint]:
    return reach(attachment, [f"{does} topics and groups that begin with {', '.join(prefixes)}"]).brokers


def _runs(attachment: Attachment, brokers: Mapping[int, Endpoint]) -> list[Leftover]:
    with closing(Cleaning(brokers, attachment.access, attachment.prefix_of_all)) as cleaning:
        return by_run(attachment.prefix_of_all, cleaning.topics(), cleaning.groups())


def by_run(prefix_of_all: str, topics: Iterable[str], groups: Mapping[str, int]) -> list[Leftover]:
    """The names of runs, by run; names of another form are no run's."""
    form = re.compile(rf"{re.escape(prefix_of_all)}[0-9a-f]{{8}}-")
    runs: dict[str, tuple[list[str], dict[str, int]]] = {}
    for topic in topics:
        if found := form.match(topic):
            runs.setdefault(found[0], ([], {}))[0].append(topic)
    for group, members in groups.items():
        if found := form.match(group):
            runs.setdefault(found[0], ([], {}))[1][group] = members
    return [Leftover(prefix, *names) for prefix, names in sorted(runs.items())]


def remove(attachment: Attachment, prefixes: Collection[str]) -> list[str]:
    """Remove what runs left, and wait until it is gone; returns a sentence about everything that is still there.

    Raises:
        PlanError: there is nothing with one of the prefixes, or it is in use; nothing was removed.
        See ``find`` for others.
    """
    brokers = _brokers(attachment, "remove", *prefixes)
    runs = {run.prefix: run for run in _runs(attachment, brokers)}
    if unknown := [prefix for prefix in prefixes if prefix not in runs]:
        raise PlanError(
            f"no run left anything with the prefix {', '.join(unknown)}; found {', '.join(runs) or 'nothing'}"
        )
    if used := [prefix for prefix in prefixes if runs[prefix].in_use]:
        raise PlanError(
            f"{', '.join(used)} is in use: its group has members. If the machine of the run is lost, the brokers "
            "remove them when their sessions are over; try again then"
        )
    left = []
    for prefix in prefixes:
        with closing(Cleaning(brokers, attachment.access, prefix)) as cleaning:
            left += cleaning.remove_all(CLEAN_S, evict=False)
    return left
