"""The back-end ``local``: everything runs as processes of this machine, each node and slot at a separate address."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fencepost.clusters import environments, toxiproxy
from fencepost.clusters.addresses import Addresses, reserve
from fencepost.clusters.cache import ProgressCallback, quiet
from fencepost.clusters.capabilities import Abilities, always
from fencepost.clusters.kafka import provision, server_properties
from fencepost.clusters.kafka.jvm import KafkaJvm
from fencepost.clusters.kafka.template import template
from fencepost.clusters.managed_cluster import OWN, ManagedCluster
from fencepost.interfaces import ClusterSpec
from fencepost.interfaces.process import Interpreter, Spawn
from fencepost.network import packets
from fencepost.network.packets import PacketFilter
from fencepost.processes.owner import ProcessOwner
from fencepost.witnesses import sockets

PARTS = ("Kafka", "Toxiproxy", "ss", "loopback")
ABILITIES: Abilities = {
    **OWN,
    **always("command"),
    "packets": packets.missing_reason,
    "broker-packets": packets.missing_reason,
}


@dataclass
class ThisMachine:
    """Starts processes of the owner. Satisfies ``ClusterHost``."""

    owner: ProcessOwner
    addresses: Addresses
    jvm: KafkaJvm
    toxiproxy: Path
    checkpoint: Path
    interpreters: Sequence[Interpreter]

    def interpreter(self, slot: int) -> Interpreter:
        """The interpreter of the scenario's environment."""
        return self.interpreters[slot] if slot < len(self.interpreters) else Interpreter()

    def spawn(self, name: str) -> Spawn:
        """Processes hold the lock of the addresses while they run; a tool does not need it."""
        return partial(self.owner.spawn, keep_open=() if name == "tool" else (self.addresses.lock,))

    def packets(self) -> PacketFilter:
        """Rules on the loopback interface."""
        return PacketFilter(self.owner)

    def sockets(self) -> str:
        """The sockets of this machine."""
        return sockets.shown()

    def close(self) -> None:
        """Release the addresses; processes that inherited the lock still hold it."""
        os.close(self.addresses.lock)


def start(spec: ClusterSpec, owner: ProcessOwner, progress: ProgressCallback = quiet) -> ManagedCluster:
    """Start a cluster and return once it serves; missing programs are fetched first.

    Raises:
        ScenarioError: the spec cannot be started.
        ProvisionError: Java, Kafka, Toxiproxy or a members' environment is missing and could not be fetched.
        ClusterError, WaitTimeout: a process did not start or serve; nothing is left running.
    """
    server_properties.check(spec)
    java, jars, proxy = provision.java(), provision.kafka(progress, spec.kafka), toxiproxy.server(progress)
    interpreters = environments.interpreters(spec.members, progress)
    made = template(owner, java, jars, progress)
    addresses = reserve(spec)
    jvm = KafkaJvm(java.path, tuple(jars), made.archive)
    cluster = ManagedCluster(spec, owner, ThisMachine(owner, addresses, jvm, proxy, made.checkpoint, interpreters))
    progress(f"starting {spec.brokers} brokers on {addresses.network}.x")
    cluster.start()
    return cluster
