"""Processes with a container each, on a Docker engine of this machine.

Each incarnation is a container: a broker that restarts is a new one with the same address and files. The container
itself writes its log to the final place, so that it is kept whatever happens to the container.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from fencepost.clusters.docker.engine import engine_errors
from fencepost.clusters.docker.removal import OWNER, remove
from fencepost.errors import ClusterError
from fencepost.processes import reaper
from fencepost.processes.owner import ProcessOwner

ENTRY = ["/bin/sh", "-c", 'exec >>"$0" 2>&1 && exec "$@"']
SIGNALLED = 128  # a container's exit code for a signal is this plus the signal's number


@dataclass(frozen=True)
class ContainerPlacement:
    """The place of a container: its image, its address in each network (empty: any), its mounts from this machine.

    Attributes:
        reads, writes: files and folders, mounted under the same paths.
    """

    image: str
    networks: Mapping[str, str] = field(default_factory=dict)
    reads: Sequence[Path] = ()
    writes: Sequence[Path] = ()


class ContainerProcess:
    """The process of one container, from its start on. Satisfies ``Process``."""

    def __init__(self, engine: Any, identity: str, place: ContainerPlacement) -> None:
        """Raises ClusterError: its process is not on this machine."""
        self._engine, self.identity, self.place = engine, identity, place
        self.pid: int = engine.api.inspect_container(identity)["State"]["Pid"]
        self._code: int | None = None
        self._ended: int | None = None  # a pidfd of the process: readable once it has ended
        if self.pid:
            self._hold()

    def _hold(self) -> None:
        try:
            self._ended = os.pidfd_open(self.pid)
            cgroups = Path(f"/proc/{self.pid}/cgroup").read_text()
        except (ProcessLookupError, FileNotFoundError):
            if self._engine.api.inspect_container(self.identity)["State"]["Pid"] != self.pid:
                return  # it ended at once
            cgroups = ""
        if self.identity not in cgroups:
            self.forget()
            raise ClusterError(
                "the Docker engine does not run its containers on this machine (in a VM?), where faults act"
            )

    def poll(self) -> int | None:
        """Its exit code; negative: the number of the signal. A program may ignore SIGTERM."""
        if self._code is None and not self._lives():
            with engine_errors("reading how a container ended"):
                code = int(self._engine.api.wait(self.identity)["StatusCode"])
            self.forget()
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

        api = self._engine.api
        acts = {signal.SIGSTOP: api.pause, signal.SIGCONT: api.unpause}
        with engine_errors(f"signal {sig} to a container"):
            try:
                acts.get(signal.Signals(sig), lambda identity: api.kill(identity, int(sig)))(self.identity)
            except APIError:
                if not self._needless(sig):
                    raise

    def _needless(self, sig: int) -> bool:
        """Whether it has ended, or is already frozen or thawed as the signal requires."""
        state = self._engine.api.inspect_container(self.identity)["State"]
        frozen = {signal.SIGSTOP: bool(state["Paused"]), signal.SIGCONT: not state["Paused"]}
        return not state["Running"] or frozen.get(signal.Signals(sig), False)

    def status(self) -> str:
        """The kernel's word for its state."""
        try:
            return str(psutil.Process(self.pid).status())
        except psutil.NoSuchProcess:
            return "gone"

    def forget(self) -> None:
        """Close the handle of the process. May be called twice."""
        if self._ended is not None:
            os.close(self._ended)
            self._ended = None


class Containers:
    """Containers and networks of an owner. The reaper removes the ones that are left."""

    def __init__(self, owner: ProcessOwner, engine: Any) -> None:
        self._owner, self._engine, self._label = owner, engine, {OWNER: owner.token}
        self._lives: list[ContainerProcess] = []
        self._names: list[str] = []
        (owner.directory / reaper.CONTAINERS).touch()

    def network(self, name: str, subnet: str, gateway: str) -> bool:
        """Create a network; False if another network has its addresses."""
        from docker.errors import APIError
        from docker.types import IPAMConfig, IPAMPool

        addresses = IPAMConfig(pool_configs=[IPAMPool(subnet=subnet, gateway=gateway)])
        full = f"fencepost-{self._owner.token}-{name}"
        with engine_errors(f"creating the network {subnet}"):
            try:
                self._engine.api.create_network(full, driver="bridge", ipam=addresses, labels=self._label)
            except APIError as error:
                if "overlap" in str(error):
                    return False
                raise
        self._names.append(full)
        return True

    def drop_networks(self) -> None:
        """Remove the networks that were created."""
        remove(self._engine, (), self._names)
        self._names.clear()

    def environment(self, image: str) -> dict[str, str]:
        """The environment variables of processes in an image."""
        with engine_errors(f"reading the image {image}"):
            found = self._engine.api.inspect_image(image)["Config"]["Env"] or ()
        return {name: value for name, _, value in (one.partition("=") for one in found)}

    def spawn(
        self,
        place: ContainerPlacement,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> ContainerProcess:
        """Start a process in a separate container, as this user; see ``Spawn``.

        Raises:
            ClusterError: the engine refused, or its containers are not on this machine.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        self._make_room(place)
        with engine_errors(f"starting a container of {place.image}"):
            identity = self._create(place, [log, *argv], {**(env or {})}, log, cwd)
            self._engine.api.start(identity)
            life = ContainerProcess(self._engine, identity, place)
        self._lives.append(life)
        return life

    def _make_room(self, place: ContainerPlacement) -> None:
        """Remove the container of an earlier incarnation at the same address, which may still occupy the address."""
        for life in self._lives:
            if any(place.networks.values()) and life.place == place and life.poll() is not None:
                remove(self._engine, [life.identity], ())

    def _create(
        self,
        place: ContainerPlacement,
        command: Sequence[str | Path],
        env: Mapping[str, str],
        log: Path,
        cwd: Path | None,
    ) -> str:
        api = self._engine.api
        binds = {str(path): {"bind": str(path), "mode": "ro"} for path in place.reads}
        own_log = () if any(log.is_relative_to(folder) for folder in place.writes) else (log,)
        binds |= {str(path): {"bind": str(path), "mode": "rw"} for path in (*place.writes, *own_log)}
        networks = [(f"fencepost-{self._owner.token}-{name}", at or None) for name, at in place.networks.items()]
        first = {name: api.create_endpoint_config(ipv4_address=at) for name, at in networks[:1]}
        created = api.create_container(
            place.image,
            [str(part) for part in command],
            entrypoint=ENTRY,
            user=f"{os.getuid()}:{os.getgid()}",
            environment={**env, reaper.TOKEN_VARIABLE: self._owner.token},
            labels=self._label,
            working_dir=str(cwd) if cwd else None,
            host_config=api.create_host_config(binds=binds, network_mode=networks[0][0] if networks else "none"),
            networking_config=api.create_networking_config(first) if first else None,
        )
        for name, at in networks[1:]:
            api.connect_container_to_network(created["Id"], name, ipv4_address=at)
        return str(created["Id"])

    def living(self, host: str) -> ContainerProcess:
        """The present process at an address.

        Raises:
            ClusterError: there is none.
        """
        for life in reversed(self._lives):
            if host in life.place.networks.values() and life.poll() is None:
                return life
        raise ClusterError(f"no container runs at {host}")

    def run(self, life: ContainerProcess, argv: Sequence[str]) -> str:
        """The output of a program that is run in the container of a process.

        Raises:
            ClusterError: it failed.
        """
        api = self._engine.api
        with engine_errors(f"{argv[0]} in a container"):
            started = api.exec_create(life.identity, list(argv))["Id"]
            output = api.exec_start(started).decode(errors="replace")
            code = api.exec_inspect(started)["ExitCode"]
        if code:
            raise ClusterError(f"{argv[0]} in a container ended with exit code {code}: {output[-300:]}")
        return str(output)

    def close(self) -> None:
        """Remove all that was created. May be called twice."""
        remove(self._engine, [life.identity for life in self._lives], ())
        for life in self._lives:
            life.forget()
        self._lives.clear()
        self.drop_networks()
