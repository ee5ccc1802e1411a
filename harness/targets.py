"""Selectors, which choose what a step of the schedule hits: the names that a scenario uses."""

from __future__ import annotations

from fencepost.schedule.selectors import (
    all_members,
    brokers,
    coordinator,
    idle,
    leader_of,
    member,
    members,
    one_member,
    owner_of,
)

__all__ = ["all_members", "brokers", "coordinator", "idle", "leader_of", "member", "members", "one_member", "owner_of"]
