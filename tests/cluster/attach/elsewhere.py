"""A cluster on another host, as far as clients can tell: a network namespace behind a cable, and brokers whose wall
clocks the test sets. Clients reach them through Toxiproxy, which can delay what they send and receive.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from cluster.worlds import LONG_S
from fencepost.clock import eventually
from fencepost.clusters import toxiproxy
from fencepost.clusters.addresses import Addresses
from fencepost.clusters.cache import quiet
from fencepost.clusters.kafka import provision
from fencepost.clusters.kafka.jvm import KafkaJvm
from fencepost.clusters.kafka.template import template
from fencepost.clusters.local import ThisMachine
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.interfaces import ClusterSpec
from fencepost.interfaces.process import Process, Spawn
from fencepost.network import namespaces
from fencepost.network.namespaces import OURS, Namespace
from fencepost.processes.owner import ProcessOwner

TOOLS = ("cc", "ip", "unshare")
NET, OUR_END = "10.181", 10  # our end of the cable; no node or slot has this number
SLOT = 0  # whose proxies all clients use
# Preloaded into a broker: its wall clock is ahead by the milliseconds in a file, which may change at any time.
SHIFTED_CLOCK = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead_ms;

__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("AHEAD_MS"), O_RDONLY);
    void *map = mmap(0, sizeof *ahead_ms, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) abort();
    ahead_ms = map;
}

int clock_gettime(clockid_t clock, struct timespec *found) {
    int failed = syscall(SYS_clock_gettime, clock, found);
    if (failed || clock != CLOCK_REALTIME || !ahead_ms) return failed;
    int64_t ns = found->tv_sec * 1000000000LL + found->tv_nsec + *ahead_ms * 1000000LL;
    found->tv_sec = ns / 1000000000LL;
    found->tv_nsec = ns % 1000000000LL;
    return 0;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found) *found = now.tv_sec;
    return now.tv_sec;
}
"""


def missing_reason() -> str:
    """What keeps this machine from having such a cluster; empty: nothing."""
    if lacking := [tool for tool in TOOLS if not shutil.which(tool)]:
        return f"there is no {' and no '.join(lacking)}"
    return namespaces.missing_reason()


class WallClock:
    """How far the wall clock of a broker is ahead of this machine's, in a file that the broker's process maps."""

    def __init__(self, file: Path, ahead_ms: int) -> None:
        self.file = file
        file.write_bytes(bytes(8))
        self.set(ahead_ms)

    def set(self, ahead_ms: int) -> None:
        """Put the clock forward, or back."""
        self.ahead_ms = ahead_ms
        with self.file.open("r+b") as file, mmap.mmap(file.fileno(), 8) as mapped:
            mapped[:] = struct.pack("=q", ahead_ms)


@dataclass
class OtherMachine(ThisMachine):
    """Starts nodes in a network namespace, and brokers with clocks of their own. Satisfies ``ClusterHost``."""

    namespace: Namespace | None = None
    library: Path = Path()
    clocks: Mapping[str, WallClock] = field(default_factory=dict)

    def spawn(self, name: str) -> Spawn:
        """What starts a node there; a tool only reads files."""
        if name == "tool":
            return self.owner.spawn
        clock = self.clocks.get(name)
        own = {"LD_PRELOAD": str(self.library), "AHEAD_MS": str(clock.file)} if clock else {}

        def spawn(*argv: Any, env: Mapping[str, str] | None = None, **options: Any) -> Process:
            assert self.namespace
            with self.namespace.entered():
                return self.owner.spawn(*argv, env={**own, **(env or {})}, **options)

        return spawn

    def close(self) -> None:
        """The namespace and its addresses go with the last process there."""


@dataclass(frozen=True)
class Elsewhere:
    """The cluster, and the clock of each broker."""

    cluster: ManagedCluster
    clocks: Mapping[int, WallClock]

    @property
    def address(self) -> str:
        """Where to attach."""
        return "attach:" + self.cluster.bootstrap(SLOT).split(",")[0]

    def delay(self, broker: int, stream: str, latency_ms: int) -> None:
        """Delay what clients send to a broker (``upstream``) or receive from it (``downstream``)."""
        self.cluster.links.add_toxic(SLOT, broker, "latency", stream, {"latency": latency_ms, "jitter": 0})


@contextmanager
def elsewhere(owner: ProcessOwner, ahead_ms: Mapping[int, int]) -> Iterator[Elsewhere]:
    """Such a cluster, of brokers whose clocks are ahead by so much. All of it ends with the owner's processes."""
    home = owner.directory / "elsewhere"
    home.mkdir()
    library = _library(home)
    clocks = {broker: WallClock(home / f"ahead-{broker}", ahead) for broker, ahead in ahead_ms.items()}
    java, jars = provision.java(), provision.kafka(quiet)
    made, proxy = template(owner, java, jars, quiet), toxiproxy.server(quiet)
    jvm = KafkaJvm(java.path, tuple(jars), made.archive)
    number = _free_number()
    namespace = _namespace(owner, home, number)
    by_name = {f"broker-{broker}": clock for broker, clock in clocks.items()}
    addresses = Addresses(number, prefix=NET)
    host = OtherMachine(owner, addresses, jvm, proxy, made.checkpoint, (), namespace, library, by_name)
    cluster = ManagedCluster(ClusterSpec(brokers=len(clocks), slots=SLOT + 1), owner, host)
    cluster.start()
    try:
        yield Elsewhere(cluster, clocks)
    finally:
        cluster.stop()


def _library(home: Path) -> Path:
    source, library = home / "shifted_clock.c", home / "shifted_clock.so"
    source.write_text(SHIFTED_CLOCK)
    argv = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library), str(source)]
    subprocess.run(argv, check=True, timeout=LONG_S)
    return library


def _free_number() -> int:
    """The third part of addresses that no cable of this machine has."""
    used = {one.address for addresses in psutil.net_if_addrs().values() for one in addresses}
    return next(n for n in range(os.getpid() % 200, 250) if f"{NET}.{n}.{OUR_END}" not in used)


def _namespace(owner: ProcessOwner, home: Path, number: int) -> Namespace:
    """A network namespace with all addresses of the cluster, and a cable to it. They disappear with its processes."""
    holder = owner.spawn(["unshare", "--net", "sleep", "infinity"], log=home / "unshare.log")
    ours = OURS.readlink()
    eventually(lambda: Path(f"/proc/{holder.pid}/ns/net").readlink() != ours, LONG_S, "a network namespace")
    namespace, cable = Namespace(holder.pid, f"{NET}.{number}.1"), f"fencepost-{number}"
    _ip("link", "add", cable, "type", "veth", "peer", "name", "there", "netns", str(holder.pid))
    _ip("addr", "add", f"{NET}.{number}.{OUR_END}/24", "dev", cable)
    _ip("link", "set", cable, "up")
    with namespace.entered():
        for last in (*range(1, 10), *range(20, 20 + SLOT + 1), 253, 254):
            _ip("addr", "add", f"{NET}.{number}.{last}/24", "dev", "there")
        for device in ("lo", "there"):
            _ip("link", "set", device, "up")
    return namespace


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=LONG_S)
