"""Every fault that a back-end permits, as it comes and on everything that it can be aimed at, is proven, undone and
proven healed, in a real group: the cells of the table of faults. Docker's are in ``test_docker_cluster``; what there is
to measure beside the witness, and what that says without the effect, is in the tests of each family.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from fault_table import Cell, unfilled

from cluster.conftest import consuming
from cluster.plans import one_in
from cluster.test_attach import SCENARIO, address
from cluster.worlds import LONG_S, ON_CLUSTER, Inject, World, bounded, shown
from fencepost.clusters.attachment import Attachment
from fencepost.clusters.cache import quiet
from fencepost.clusters.own import OwnCluster
from fencepost.processes import Owner

pytestmark = ON_CLUSTER

# See ``world_of_module``: only there can two processes have one name, and a member do without a topic.
STATIC = True
MORE = ("refunds",)
DAYS = 3


@pytest.mark.parametrize("cell", one_in(DAYS, unfilled("local")), ids=str)
def test_every_fault_is_proven_and_healed(world: World, inject: Inject, cell: Cell) -> None:
    shown(cell, world, inject)


@pytest.fixture(scope="module")
def guests(
    session_cluster: OwnCluster, session_owner: Owner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A group in the same cluster, which knows it by an address alone."""
    attachment = Attachment.of(address(session_cluster))
    wanted = replace(SCENARIO, group=replace(SCENARIO.group, spare=1))  # as many as there are in the world
    attached = attachment.start(wanted, wanted.plan(1), session_owner, quiet)
    history, name = tmp_path_factory.mktemp("guests"), f"{attachment.prefix}guests"
    with consuming(
        attached,
        session_owner,
        history,
        name,
        "cooperative",
        STATIC,
        tuple(f"{name}-{topic}" for topic in MORE),
        "attach",
    ) as world:
        yield world
    attached.stop()


@pytest.mark.parametrize("cell", one_in(DAYS, unfilled("attach")), ids=str)
def test_every_fault_that_needs_no_power_over_brokers_is_proven_and_healed(
    guests: World, inject: Inject, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, LONG_S)
    shown(cell, guests, inject)
