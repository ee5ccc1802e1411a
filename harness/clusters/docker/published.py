"""The ports of IPv4 that running containers publish on this machine, by a container's name or a Compose file."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.clusters.docker import engine
from fencepost.errors import ScenarioError
from fencepost.model.endpoint import Endpoint

LOOPBACK = "127.0.0.1"
ANYWHERE = ("", "0.0.0.0")
PROJECT = "com.docker.compose.project"
FOLDER, FILES = f"{PROJECT}.working_dir", f"{PROJECT}.config_files"


@dataclass(frozen=True)
class PublishedPort:
    """A port of a running container.

    Attributes:
        endpoint: where it can be reached on this machine.
        container, name: the container's id and name.
        lasting: whether the port is the same when the container has ended and was started again.
        anywhere: whether it is published at all addresses of this machine.
    """

    endpoint: Endpoint
    container: str = ""
    name: str = ""
    lasting: bool = False
    anywhere: bool = False

    def leads_to(self, address: Endpoint) -> bool:
        """Whether clients on this machine that use an ``address`` of this machine reach the container."""
        if address.port != self.endpoint.port:
            return False
        try:
            return self.anywhere or socket.gethostbyname(address.host) == self.endpoint.host
        except OSError:
            return False


def by_container(name: str) -> list[PublishedPort]:
    """The ports that a container publishes, in the order of their numbers inside.

    Raises:
        ProvisionError: no Docker engine answers.
        ScenarioError: it is not there, does not run, or publishes nothing.
    """
    from docker.errors import NotFound

    with engine.client() as client:
        try:
            container = client.containers.get(name)
        except NotFound as error:
            running = ", ".join(sorted(one.name for one in client.containers.list(ignore_removed=True))) or "none"
            raise ScenarioError(f"there is no container {name!r}; these run: {running}") from error
        if container.status != "running":
            raise ScenarioError(f"the container {name!r} is {container.status}: start it first")
        return _published([container], f"the container {name!r} publishes no port", "start it with -p")


def by_compose(file: Path) -> list[PublishedPort]:
    """The ports that the running containers of a Compose project publish.

    Raises:
        ProvisionError: no Docker engine answers.
        ScenarioError: there is no such file, none of its containers runs, or they publish nothing.
    """
    if not file.is_file():
        raise ScenarioError(f"there is no Compose file {file}")
    with engine.client() as client:
        every = client.containers.list(filters={"label": PROJECT}, ignore_removed=True)
        mine = [one for one in every if file.resolve() in _files(one)]
        if not mine:
            raise ScenarioError(f"no container of {file} runs: start them with docker compose -f {file} up -d")
        projects = sorted({one.labels[PROJECT] for one in mine})
        if len(projects) > 1:
            raise ScenarioError(
                f"several projects of {file} run ({', '.join(projects)}): use container:NAME of one broker"
            )
        return _published(mine, f"the containers of {file} publish no port", "give its brokers `ports`")


def engine_is_local() -> bool:
    """Whether the engine is asked through a socket file, so that what it publishes is on this machine."""
    return engine.address().startswith("unix://")


def _published(containers: Iterable[Any], none: str, remedy: str) -> list[PublishedPort]:
    if not engine_is_local():
        raise ScenarioError("the Docker engine may be on another machine (DOCKER_HOST): use attach:HOST:PORT instead")
    found = list(dict.fromkeys(port for one in containers for port in _ports(one)))
    if not found:
        raise ScenarioError(f"{none} on this machine, so no client can reach it: {remedy}")
    return found


def _ports(container: Any) -> Iterator[PublishedPort]:
    ports, asked = container.attrs["NetworkSettings"]["Ports"] or {}, container.attrs["HostConfig"]
    for inside, bindings in sorted(ports.items()):
        if inside.endswith("/tcp"):
            # Without a number in the request, the engine assigns another port at each start.
            numbers = {one["HostPort"] for one in (asked["PortBindings"] or {}).get(inside) or ()}
            for host, port in ((one["HostIp"], one["HostPort"]) for one in bindings or ()):
                if ":" not in host:  # else the same port of IPv6
                    endpoint = Endpoint(LOOPBACK if host in ANYWHERE else host, int(port))
                    lasting = port in numbers and not asked["AutoRemove"]
                    yield PublishedPort(endpoint, container.id, container.name, lasting, host in ANYWHERE)


def _files(container: Any) -> set[Path]:
    """The Compose files of a container's project."""
    labels = container.labels
    names = filter(None, labels.get(FILES, "").split(","))
    return {Path(labels.get(FOLDER, "/"), name).resolve() for name in names}
