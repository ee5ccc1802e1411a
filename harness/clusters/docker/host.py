"""The back-end ``docker``: everything runs in containers, on two networks of the cluster's own.

Controller and brokers are in one network, members in the other, and Toxiproxy in both: a member reaches its proxies and
nothing behind them. The harness reaches all of them at their fixed addresses: no port is published. Images:
``docker.images``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path

import fencepost_member
from fencepost.clusters.addresses import PROXY, Addresses
from fencepost.clusters.cache import ProgressCallback, quiet
from fencepost.clusters.capabilities import Abilities, always
from fencepost.clusters.docker import engine, packets
from fencepost.clusters.docker.images import HOME, Images, images, installed
from fencepost.clusters.docker.packets import ContainerPackets
from fencepost.clusters.docker.processes import ContainerPlacement, Containers, OwnContainerProcess
from fencepost.clusters.kafka import server_properties
from fencepost.clusters.kafka.jvm import KafkaJvm
from fencepost.clusters.managed_cluster import OWN, ManagedCluster
from fencepost.errors import ClusterError, Complaints, ScenarioError
from fencepost.interfaces import ClusterSpec
from fencepost.interfaces.process import Environment, Interpreter, Spawn
from fencepost.model.clients import VERIFIABLE
from fencepost.model.settings import KAFKAS
from fencepost.processes.owner import ProcessOwner
from fencepost.witnesses import sockets

PARTS = ("Docker",)
ABILITIES: Abilities = {
    **OWN,
    "packets": packets.missing_reason,
    "broker-packets": packets.missing_reason,
    "command": lambda: (
        "members run in containers, and our image does not contain the program; use local or attach, or "
        "give the group an image that does"
    ),
    **always("image"),
}
KAFKA, MEMBERS = "10.177", "10.178"  # the beginning of the addresses of the two networks
NUMBERS = 250
GATEWAY = 252  # the last part of this machine's own address in both


class ContainerHost:
    """Starts processes in containers. Satisfies ``ClusterHost``."""

    def __init__(
        self, owner: ProcessOwner, containers: Containers, made: Images, number: int, members: Sequence[Environment]
    ) -> None:
        self._owner, self._containers, self._images, self._members = owner, containers, made, members
        self.addresses = Addresses(number, prefix=KAFKA, proxies=f"{MEMBERS}.{number}.{PROXY}")
        self.jvm = KafkaJvm(Path("java"), (Path("/opt/kafka/libs/*"),), HOME / "kafka.jsa")
        self.toxiproxy, self.checkpoint = Path("toxiproxy-server"), made.checkpoint

    def interpreter(self, slot: int) -> Interpreter:
        """The Python of the members' image, or Kafka's own client in the image of nodes."""
        own = self._members[slot : slot + 1]
        if any(one.client.name == VERIFIABLE for one in own):
            return Interpreter(
                spawn=self._spawn_member, command=self.jvm.consumer, lines=True, image=self._images.kafka
            )
        return Interpreter("python3", (HOME / "packages",), self._spawn_member)

    def spawn(self, name: str) -> Spawn:
        """All processes see the owner's directory; a tool has no network."""
        ours, addresses = {self._owner.directory: "rw"}, self.addresses
        if name == "toxiproxy":
            ends = {"kafka": addresses.proxy_api.host, "members": addresses.proxies}
            return partial(self._containers.spawn, ContainerPlacement(self._images.toxiproxy, ends, ours))
        kind, _, number = name.partition("-")
        at = {"controller": addresses.controller, "broker": addresses.observer(int(number or 0))}.get(kind)
        ours[Path(str(resources.files("fencepost.clusters.kafka").joinpath("log4j2.yaml")))] = "ro"
        place = ContainerPlacement(self._images.kafka, {"kafka": at.host} if at else {}, ours)
        return partial(self._containers.spawn, place)

    def packets(self) -> ContainerPackets:
        """Rules in the containers."""
        return ContainerPackets(self._owner, self._containers.living)

    def sockets(self) -> str:
        """The sockets of Toxiproxy's container."""
        return self._containers.living(self.addresses.proxy_api.host).run(sockets.COMMAND)

    def close(self) -> None:
        """Remove all containers and the networks."""
        self._containers.close()

    def _spawn_member(
        self, argv: Sequence[str | Path], *, log: Path, env: Mapping[str, str], history: Path, image: str
    ) -> OwnContainerProcess:
        code = Path(fencepost_member.__file__).parent
        claims = self._owner.directory / "config"  # programs with several consumers reserve names for them there
        mounts = {self._owner.directory: "ro", code: "ro", history: "rw", claims: "rw"}
        place = ContainerPlacement(image or self._images.member, {"members": ""}, mounts)
        return self._containers.spawn(place, argv, log=log, env=env)


def start(spec: ClusterSpec, owner: ProcessOwner, progress: ProgressCallback = quiet) -> ManagedCluster:
    """Start a cluster and return once it serves; missing images are built.

    Raises:
        ScenarioError: the spec cannot be started.
        ProvisionError: no engine answers, or an image could not be built.
        ClusterError, WaitTimeout: a container did not start or serve; nothing is left of it.
    """
    check(spec)
    for image in {wanted.image for wanted in spec.members} - {""}:
        engine.must_have(image)
    made = images(progress)
    containers = Containers(owner)
    try:
        number = _networks(containers)
        progress(f"starting {spec.brokers} brokers in containers on {KAFKA}.{number}.x")
        cluster = ManagedCluster(spec, owner, ContainerHost(owner, containers, made, number, spec.members))
    except BaseException:
        containers.close()
        raise
    cluster.start()
    return cluster


def check(spec: ClusterSpec) -> None:
    """Refuse a spec that cannot be started or that the images do not support. Raises a ScenarioError of all reasons."""
    complaints = Complaints()
    with complaints.gather(ScenarioError):
        server_properties.check(spec)
    complaints.found += map(ScenarioError, _not_in_images(spec))
    complaints.refuse()


def _not_in_images(spec: ClusterSpec) -> Iterator[str]:
    ours = [one for one in spec.members if not one.image]
    there = [client.name for client in installed()]
    if any(one.own or one.client.name not in (*there, VERIFIABLE) for one in ours):
        yield (
            f"members in containers use their image's Python with the {', '.join(there)} that are installed here, "
            f"or the {VERIFIABLE} of its Kafka: use --cluster local for others (the group's client and python)"
        )
    if spec.kafka not in ("", KAFKAS[0]):
        yield f"the images are of Kafka {KAFKAS[0]}: use --cluster local for Kafka {spec.kafka}"


def _networks(containers: Containers) -> int:
    """Create both networks, with the first number that no other cluster uses."""
    for number in range(1, NUMBERS + 1):
        if all(
            containers.network(name, f"{prefix}.{number}.0/24", f"{prefix}.{number}.{GATEWAY}")
            for name, prefix in (("kafka", KAFKA), ("members", MEMBERS))
        ):
            return number
        containers.close()
    raise ClusterError(f"no network {KAFKA}.1.0/24 to {KAFKA}.{NUMBERS}.0/24 is free: are old clusters still running?")
