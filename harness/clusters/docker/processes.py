"""Processes with a container each, on a Docker engine of this machine; testcontainers makes containers and networks.

Each incarnation is a container: a broker that restarts is a new one with the same address and files. The container
itself writes its log to the final place, so that it is kept whatever happens to the container.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from fencepost.clusters.docker.engine import CALL_S, container, engine_errors
from fencepost.clusters.docker.removal import OWNER, SEVERAL
from fencepost.errors import ClusterError
from fencepost.processes import reaper
from fencepost.processes.owner import ProcessOwner

if TYPE_CHECKING:
    from docker.models.containers import Container
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.network import Network

# The image's own import path of Python follows ours.
ENTRY = """
[ -z "$FENCEPOST_PATH" ] || export PYTHONPATH="$FENCEPOST_PATH${PYTHONPATH:+:$PYTHONPATH}"
exec >>"$0" 2>&1 && exec "$@"
"""
SIGNALLED = 128  # a container's exit code for a signal is this plus the signal's number


@dataclass(frozen=True)
class ContainerPlacement:
    """The place of a container: its image, its address in each network (empty: any), its mounts from this machine.

    Attributes:
        mounts: files and folders, mounted under the same paths: ``ro`` or ``rw``.
    """

    image: str
    networks: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[Path, str] = field(default_factory=dict)


class ContainerProcess:
    """The process of one container, from its start on. Satisfies ``Process``."""

    def __init__(self, container: Container) -> None:
        """Raises ClusterError: its process is not on this machine."""
        self._container = container
        self._code: int | None = None
        self._ended: int | None = None  # a pidfd of the process: readable once it has ended
        self.pid = self._present_pid()
        if self.pid:
            self._hold()

    def _present_pid(self) -> int:
        self._container.reload()
        return int(self._container.attrs["State"]["Pid"])

    def _hold(self) -> None:
        with suppress(ProcessLookupError, FileNotFoundError):
            self._ended = os.pidfd_open(self.pid)
            if str(self._container.id) in Path(f"/proc/{self.pid}/cgroup").read_text():
                return
        self.release()
        if self._present_pid() == self.pid:  # else it ended at once
            raise ClusterError(
                "the Docker engine does not run its containers on this machine (in a VM?), where faults act"
            )

    def poll(self) -> int | None:
        """Its exit code; negative: the number of the signal. A program may ignore SIGTERM."""
        if self._code is None and not self._lives():
            with engine_errors("reading how a container ended"):
                code = int(self._container.wait()["StatusCode"])
            self.release()
            killed = code > SIGNALLED and code != SIGNALLED + signal.SIGTERM
            self._code = SIGNALLED - code if killed else code
        return self._code

    def _lives(self) -> bool:
        if self._ended is None:
            return False
        look = select.poll()
        look.register(self._ended, select.POLLIN)
        return not look.poll(0)

    def send_signal(self, sig: int) -> None:
        """Let the engine send it; SIGSTOP and SIGCONT freeze and thaw the container. No error if that is already so."""
        from docker.errors import APIError

        acts = {signal.SIGSTOP: self._container.pause, signal.SIGCONT: self._container.unpause}
        results = {signal.SIGSTOP: "paused", signal.SIGCONT: "running"}
        with engine_errors(f"signal {sig} to a container"):
            try:
                acts.get(signal.Signals(sig), lambda: self._container.kill(int(sig)))()
            except APIError:
                self._container.reload()
                if self._container.status not in ("exited", results.get(signal.Signals(sig))):
                    raise

    def status(self) -> str:
        """The kernel's word for its state."""
        try:
            return str(psutil.Process(self.pid).status())
        except psutil.NoSuchProcess:
            return "gone"

    def release(self) -> None:
        """Close the handle of the process. May be called twice."""
        if self._ended is not None:
            os.close(self._ended)
            self._ended = None


class OwnContainerProcess(ContainerProcess):
    """The process of a container that testcontainers started for us."""

    def __init__(self, started: DockerContainer, place: ContainerPlacement) -> None:
        """Raises ClusterError: its process is not on this machine."""
        super().__init__(started.get_wrapped_container())
        self.place, self._started = place, started

    def run(self, argv: Sequence[str]) -> str:
        """The output of a program that is run in its container.

        Raises:
            ClusterError: it failed.
        """
        with engine_errors(f"{argv[0]} in a container"):
            code, output = self._started.exec([*argv])
        text = str(output.decode(errors="replace"))
        if code:
            raise ClusterError(f"{argv[0]} in a container ended with exit code {code}: {text[-300:]}")
        return text

    def remove(self) -> None:
        """Remove the container, even a paused or running one. May be called twice."""
        from docker.errors import APIError

        self.release()
        with suppress(APIError):  # it is gone, or is being removed
            self._started.stop()


class Containers:
    """Containers and networks of an owner. The reaper removes the ones that are left."""

    def __init__(self, owner: ProcessOwner) -> None:
        self._owner, self._label = owner, {OWNER: owner.token}
        self._lives: list[OwnContainerProcess] = []
        self._networks: dict[str, Network] = {}
        (owner.directory / reaper.CONTAINERS).touch()

    def network(self, name: str, subnet: str, gateway: str) -> bool:
        """Create a network; False if another network has its addresses."""
        from docker.errors import APIError
        from docker.types import IPAMConfig, IPAMPool
        from testcontainers.core.network import Network

        addresses = IPAMConfig(pool_configs=[IPAMPool(subnet=subnet, gateway=gateway)])
        with engine_errors(f"creating the network {subnet}"):
            network = Network({"timeout": CALL_S}, {"ipam": addresses, "labels": self._label})
            network.name = f"fencepost-{self._owner.token}-{name}"
            try:
                self._networks[name] = network.create()
            except APIError as error:
                if "overlap" in str(error):
                    return False
                raise
        return True

    def spawn(
        self,
        place: ContainerPlacement,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> OwnContainerProcess:
        """Start a process in a separate container, as this user; see ``Spawn``.

        Raises:
            ClusterError: the engine refused, or its containers are not on this machine.
        """
        from docker.errors import APIError

        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        self._make_room(place)
        with engine_errors(f"starting a container of {place.image}"):
            made = self._placed(replace(place, mounts={**place.mounts, log: "rw"}), cwd)
            made.with_command([str(part) for part in (log, *argv)]).with_env(reaper.TOKEN_VARIABLE, self._owner.token)
            for name, value in (env or {}).items():
                made.with_env("FENCEPOST_PATH" if name == "PYTHONPATH" else name, value)
            try:
                life = OwnContainerProcess(made.start(), place)
                for name, at in [*place.networks.items()][1:]:
                    self._join(made, name, at)
            except BaseException:
                with suppress(APIError):  # it is gone
                    made.stop()
                raise
        self._lives.append(life)
        return life

    def _make_room(self, place: ContainerPlacement) -> None:
        """Remove the container of an earlier incarnation at the same address, which may still occupy the address."""
        for life in self._lives:
            if any(place.networks.values()) and life.place == place and life.poll() is not None:
                life.remove()

    def _placed(self, place: ContainerPlacement, cwd: Path | None) -> DockerContainer:
        """A container at its place, to be started."""
        made = container(place.image)
        made.image = place.image  # testcontainers adds its prefix for public images, and ours are none
        for path, mode in place.mounts.items():
            made.with_volume_mapping(path, str(path), mode)
        network, at = next(((self._networks[name].name, at) for name, at in place.networks.items()), ("none", ""))
        endpoint = made.get_docker_client().client.api.create_endpoint_config(ipv4_address=at or None)
        return made.with_kwargs(
            entrypoint=["/bin/sh", "-c", ENTRY],
            user=f"{os.getuid()}:{os.getgid()}",
            labels=self._label,
            working_dir=str(cwd) if cwd else None,
            network=network,
            networking_config={network: endpoint},
            # A program may listen at its address in a network that the container joins a moment later.
            sysctls={"net.ipv4.ip_nonlocal_bind": "1"} if len(place.networks) > 1 else None,
        )

    def _join(self, started: DockerContainer, network: str, at: str) -> None:
        """Join one more network, at an address: neither is possible with testcontainers."""
        api, identity = started.get_docker_client().client.api, started.get_container_id()
        api.connect_container_to_network(identity, self._networks[network].name, ipv4_address=at or None)

    def living(self, host: str) -> OwnContainerProcess:
        """The present process at an address.

        Raises:
            ClusterError: there is none.
        """
        for life in reversed(self._lives):
            if host in life.place.networks.values() and life.poll() is None:
                return life
        raise ClusterError(f"no container runs at {host}")

    def close(self) -> None:
        """Remove all that was created. May be called twice."""
        from docker.errors import APIError

        with ThreadPoolExecutor(SEVERAL) as several:
            list(several.map(OwnContainerProcess.remove, self._lives))
        for network in self._networks.values():
            with suppress(APIError):  # likewise
                network.remove()
        self._lives.clear()
        self._networks.clear()
