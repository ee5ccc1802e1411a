"""Protocol states, which start faults and end them: the names that a scenario uses."""

from __future__ import annotations

from fencepost.schedule.protocol_states import (
    assigning,
    commit_in_flight,
    coordinator_loading,
    fenced,
    joining,
    rebalanced,
    revoking,
    syncing,
)

__all__ = [
    "assigning",
    "commit_in_flight",
    "coordinator_loading",
    "fenced",
    "joining",
    "rebalanced",
    "revoking",
    "syncing",
]
