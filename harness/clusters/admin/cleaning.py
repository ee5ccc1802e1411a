"""Finds and removes everything with a prefix in a cluster; and discovers a cluster by one address."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from kafka import errors as kafka_errors

from fencepost.clock import eventually
from fencepost.clusters.admin import groups, requests
from fencepost.clusters.admin.connections import Connections
from fencepost.errors import ClusterError, WaitTimeout
from fencepost.model.endpoint import Endpoint

CONNECT_S = 5.0


class Discovered(NamedTuple):
    """A cluster as one of its brokers describes it to clients: its id, and the brokers' addresses by their ids."""

    cluster_id: str
    brokers: dict[int, Endpoint]


def discover(address: Endpoint, access: Mapping[str, str]) -> Discovered:
    """The cluster of the broker at ``address``.

    Raises:
        ClusterError: no broker answers there, or refuses us; gives the last error.
    """
    asked = Connections({-1: address}, access)
    try:
        found = eventually(
            lambda: asked.request_once(-1, requests.metadata()), CONNECT_S, f"a Kafka broker at {address} to answer"
        )
    except WaitTimeout as late:
        why = f" ({asked.refusals[-1]})" if -1 in asked.refusals else ""
        hint = (
            "are its SASL settings right" if any(n.startswith("sasl.") for n in access) else "does it need SASL or TLS"
        )
        raise ClusterError(
            f"no Kafka broker answered at {address} within {CONNECT_S:g} s{why}. Is the address that of a listener for "
            f"clients, and {hint}?"
        ) from late
    finally:
        asked.close()
    brokers = {broker.node_id: Endpoint(_bracketed(broker.host), broker.port) for broker in found.brokers}
    return Discovered(found.cluster_id or "", brokers)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class Cleaning:
    """Removes topics and groups whose names begin with ``prefix``, and touches nothing else."""

    def __init__(self, brokers: Mapping[int, Endpoint], access: Mapping[str, str], prefix: str) -> None:
        """``prefix``: that of one run; an empty one would match everything."""
        if not prefix:
            raise ValueError("a prefix is needed")
        self._brokers, self._prefix = Connections(brokers, access), prefix

    def remove_all(self, within_s: float, evict: bool = True) -> list[str]:
        """Remove everything, repeatedly until nothing is there; returns what is left after ``within_s``, and why.

        Args:
            evict: remove members from their groups first, as killed members stay until their sessions are over; else
                nothing is removed while a group has members.
        """
        left: list[str] = []

        def gone() -> bool:
            groups_left = self._remove_groups(evict)
            left[:] = [*groups_left, *(self._remove_topics() if evict or not groups_left else ())]
            return not left

        try:
            eventually(gone, within_s, "everything to be removed", every_s=0.2, forgive=(WaitTimeout, ClusterError))
        except WaitTimeout as late:
            return left or [str(late)]
        return []

    def close(self) -> None:
        """Close all connections."""
        self._brokers.close()

    def topics(self) -> list[str]:
        """The topics that would be removed."""
        known = self._brokers.request(requests.everything).topics
        return [topic.name for topic in known if topic.name and topic.name.startswith(self._prefix)]

    def groups(self) -> dict[str, int]:
        """The groups that would be removed, with the number of their members.

        Raises:
            ClusterError: a broker does not answer, or refuses to describe a group.
        """
        found: dict[str, int] = {}
        for broker in self._brokers.brokers:
            if (names := self._groups_of(broker)) is None:
                raise ClusterError(f"broker {broker} does not answer, so its groups are unknown")
            found |= {name: len(groups.describe(self._brokers, name).members) for name in names}
        return found

    def _groups_of(self, broker: int) -> list[str] | None:
        """The groups that a broker coordinates; None: it does not answer, or does not know all of them yet."""
        listed = self._brokers.request_once(broker, requests.groups())
        if listed is None or listed.error_code:
            return None
        return [g.group_id for g in listed.groups if g.group_id.startswith(self._prefix)]

    def _remove_topics(self) -> list[str]:
        """Request the removal of topics; returns those that were there. They are gone once no broker lists them."""
        names = self.topics()
        if not names:
            return []
        answer = self._brokers.request(lambda: requests.topic_deletion(names))
        return [f"topic {result.name}{_why(result)}" for result in answer.responses]

    def _remove_groups(self, evict: bool) -> list[str]:
        """Request the removal of groups from the brokers that list them, their coordinators; returns those there."""
        left = []
        for broker in self._brokers.brokers:
            if (names := self._groups_of(broker)) is None:
                left.append(f"the groups of broker {broker}, which does not answer")
                continue
            for group in names:
                if evict:
                    self._evict(broker, group)
                answer = self._brokers.request_once(broker, requests.group_deletion(group))
                why = _why(answer.results[0]) if answer else ""
                left.append(f"group {group}{why}")
        return left

    def _evict(self, broker: int, group: str) -> None:
        """Remove the members of a group. If that fails, the deletion of the group says why it cannot be removed yet."""
        with suppress(ClusterError, WaitTimeout):
            for member in groups.describe(self._brokers, group).members:
                self._brokers.request_once(broker, requests.removal(group, member))


def _why(result: object) -> str:
    code = getattr(result, "error_code", 0)
    return f" ({kafka_errors.for_code(code).__name__})" if code else ""
