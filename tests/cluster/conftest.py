"""Clusters for cluster tests: one for the whole session, healed after every test that had it in its hands."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from fencepost.clock import eventually
from fencepost.clusters import local
from fencepost.clusters.local import LocalCluster
from fencepost.interfaces import ClusterSpec
from fencepost.processes import Owner

SLOTS = 4
LONG_S = 60  # for what comes at once on a machine that has nothing else to do


@pytest.fixture(scope="session")
def session_owner() -> Iterator[Owner]:
    with Owner.open() as owner:
        yield owner


@pytest.fixture(scope="session")
def session_cluster(session_owner: Owner) -> Iterator[LocalCluster]:
    running = local.start(ClusterSpec(slots=SLOTS), session_owner)
    yield running
    running.stop()


@pytest.fixture
def cluster(session_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """Three brokers and four slots, shared by all tests of the session; use topics and groups of your own."""
    yield session_cluster
    session_cluster.links.reset()
    for broker in session_cluster.brokers.values():
        broker.signal(signal.SIGCONT)
        broker.start()
    everybody = set(session_cluster.brokers)

    def in_sync() -> bool:
        admin = session_cluster.admin
        return all(set(isr) == everybody for isr in admin.in_sync_replicas("__consumer_offsets").values())

    eventually(in_sync, LONG_S, "all replicas of the offsets topic to be in sync again")
