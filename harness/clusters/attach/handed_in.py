"""Clusters that are handed in: containers by name, a Compose project, or a value of a test that knows its address."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.clusters.attach.access import read_access
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.docker import published
from fencepost.clusters.docker.published import PublishedPort
from fencepost.clusters.names import ATTACH, COMPOSE, CONTAINER, is_name
from fencepost.errors import ClusterError, ScenarioError
from fencepost.model.endpoint import Endpoint

CONNECT_S = 2.0
WAYS: dict[str, Callable[[str], list[PublishedPort]]] = {
    CONTAINER: published.by_container,
    COMPOSE: lambda file: published.by_compose(Path(file)),
}
COMPOSE_FILES = (
    "compose.yaml",
    "compose.yml",
    "docker-compose.yaml",
    "docker-compose.yml",
)  # as Compose looks for them


def scheme_of(name: str) -> str:
    """``container:`` or ``compose:``, if the name of a back-end begins with it; else empty."""
    return next(filter(name.startswith, WAYS), "")


def attachment(name: str, config: Path | None = None, permitted: bool = False) -> Attachment:
    """The attachment to the brokers in ``container:NAME`` or ``compose:FILE``; see ``Attachment.of``.

    Raises:
        ProvisionError: no Docker engine answers.
        ScenarioError: there is no such container, it does not run or publishes nothing, or see ``Attachment.of``.
        ClusterError: no broker that can be reached from here answers at a published port.
    """
    scheme = scheme_of(name)
    ports = WAYS[scheme](name.removeprefix(scheme))
    access = read_access(config)
    address = _reachable(name, [port.endpoint for port in ports], access)
    return Attachment(address, access, permitted, name, published=ports)


def name_of(cluster: object) -> str:
    """The name of a back-end, for --cluster, that leads to a cluster that a test hands in.

    Args:
        cluster: a name of a back-end; an address, or several with commas; a started container of testcontainers
            (``KafkaContainer``, ``RedpandaContainer``) or anything else with ``get_bootstrap_server``,
            ``bootstrap_servers`` or ``bootstrap`` (a method or a value); a ``DockerCompose`` of testcontainers.

    Raises:
        ScenarioError: the value leads to no cluster.
    """
    if isinstance(cluster, str):
        known = is_name(cluster) or ":" not in cluster
        return cluster if known else f"{ATTACH}{cluster.partition(',')[0].rpartition('//')[2]}"
    if (wrapped := getattr(cluster, "get_wrapped_container", None)) and published.engine_is_local():
        return f"{CONTAINER}{wrapped().name}"
    for name in ("get_bootstrap_server", "bootstrap_servers", "bootstrap"):
        found: Any = getattr(cluster, name, None)
        if found is not None:
            value = found() if callable(found) else found
            return name_of(value if isinstance(value, str) else next(iter(value), value))
    folder, files = (getattr(cluster, name, None) for name in ("context", "compose_file_name"))
    if folder is not None:
        names = [files] if isinstance(files, str) else files or COMPOSE_FILES
        paths = [Path(folder, name).absolute() for name in names]
        return f"{COMPOSE}{next(filter(Path.is_file, paths), paths[-1])}"
    raise ScenarioError(
        f"chaos_cluster returned {type(cluster).__name__}, which leads to no cluster: return an address HOST:PORT, a "
        "name of a back-end, a started KafkaContainer, a DockerCompose, or an object with bootstrap_servers"
    )


def _reachable(name: str, ports: Sequence[Endpoint], access: Mapping[str, str]) -> Endpoint:
    """The first of these addresses at which a broker answers whose cluster can be reached from here."""
    from fencepost.clusters.admin.cleaning import discover  # a client library, which listing back-ends does not need

    why = []
    for port in ports:
        try:
            brokers = discover(port, access).brokers
        except ClusterError as error:
            why.append(str(error))
            continue
        advertised = ", ".join(f"broker {number} at {at}" for number, at in brokers.items())
        # Another cluster of this machine may listen where a broker in a container says that it listens.
        if all(map(_connects, brokers.values())) and {at.port for at in brokers.values()} & {one.port for one in ports}:
            return port
        why.append(
            f"the cluster at {port} advertises {advertised}, and its clients do not reach it there: let its brokers "
            "advertise the addresses that their containers publish on this machine"
        )
    raise ClusterError(f"{name} leads to no cluster: {'; '.join(why)}")


def _connects(at: Endpoint) -> bool:
    try:
        socket.create_connection((at.host.strip("[]"), at.port), CONNECT_S).close()
    except OSError:
        return False
    return True
