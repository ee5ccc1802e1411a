"""Every fault that a back-end permits, as it comes and on everything that it can be aimed at, is proven, undone and
proven healed, in a real group: the cells of the table of faults. Docker's are in ``test_docker_cluster``; what there is
to measure beside the witness, and what that says without the effect, is in the tests of each family.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fault_table import Cell, unfilled

from cluster.attach.test_attach import guesting
from cluster.worlds import LONG_S, ON_CLUSTER, Inject, World, bounded, shown
from fencepost.clusters.managed_cluster import ManagedCluster

pytestmark = ON_CLUSTER

# See ``world_of_module``: only there can two processes have one name, and a member do without a topic.
STATIC = True
MORE = ("refunds",)


@pytest.mark.parametrize("cell", unfilled("local"), ids=str)
def test_every_fault_is_proven_and_healed(world: World, inject: Inject, cell: Cell) -> None:
    shown(cell, world, inject)


@pytest.fixture(scope="module")
def guests(session_cluster: ManagedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with guesting(session_cluster, tmp_path_factory.mktemp("guests"), STATIC, MORE) as world:
        yield world


@pytest.mark.parametrize("cell", unfilled("attach"), ids=str)
def test_every_fault_that_needs_no_power_over_brokers_is_proven_and_healed(
    guests: World, inject: Inject, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, LONG_S)
    shown(cell, guests, inject)
