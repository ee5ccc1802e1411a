"""Which addresses lead to a Kafka of this machine: a forwarded port does not, although its address is one of ours."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from fencepost.clusters.attach import broker_processes
from fencepost.clusters.attach.broker_processes import runs_here
from fencepost.model.endpoint import Endpoint

# Accepts connections, and says at which port.
ACCEPTING = """
import socket, sys
kept, family = [], socket.AF_INET6 if sys.argv[1] == "::" else socket.AF_INET
with socket.create_server((sys.argv[1], 0), family=family, dualstack_ipv6=sys.argv[1] == "::") as server:
    print(server.getsockname()[1], flush=True)
    while True:
        kept.append(server.accept())
"""


class Programs(NamedTuple):
    """Starts programs that end with the test."""

    folder: Path
    closing: ExitStack

    def accepting(self, name: str, host: str, *arguments: str) -> Endpoint:
        """Where a program of this name, with these arguments, accepts connections."""
        program = self.folder / name
        program.symlink_to(os.path.realpath(sys.executable))
        argv = [program, "-I", "-S", "-c", ACCEPTING, host, *arguments]
        running = self.closing.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        self.closing.callback(running.kill)
        assert running.stdout
        return Endpoint("127.0.0.1", int(running.stdout.readline()))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Programs]:
    monkeypatch.setattr(broker_processes, "ACCEPTED_S", 0.5)
    with ExitStack() as closing:
        yield Programs(tmp_path, closing)


@pytest.mark.parametrize("host", ["127.0.0.1", "::"], ids=["IPv4", "IPv4 in the form of IPv6"])
def test_a_kafka_of_this_machine_is_found_by_the_other_end_of_a_connection(programs: Programs, host: str) -> None:
    broker = programs.accepting("java", host, "kafka.Kafka", "server.properties")
    assert runs_here(broker)
    assert runs_here(Endpoint("localhost", broker.port))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("ssh", ("-L", "9092:kafka:9092", "kafka.Kafka")),
        ("kubectl", ("port-forward", "service/kafka")),
        ("java", ("org.example.Forwarder",)),
    ],
)
def test_a_port_that_another_program_forwards_leads_anywhere(
    programs: Programs, name: str, arguments: tuple[str, ...]
) -> None:
    assert not runs_here(programs.accepting(name, "127.0.0.1", *arguments))


def test_where_processes_cannot_be_seen_nothing_is_certain(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = programs.accepting("java", "127.0.0.1", "kafka.Kafka")
    monkeypatch.setattr(psutil, "net_connections", lambda kind: [])
    assert not runs_here(broker), "a connection that ends elsewhere, or in another network namespace"

    def refused(kind: str) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", refused)
    assert not runs_here(broker)


def test_where_nobody_accepts_there_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    assert not runs_here(Endpoint("127.0.0.1", free))
    assert not runs_here(Endpoint("kafka.invalid", 9092))
