"""The load of a battery follows from what one member can do."""

from __future__ import annotations

import pytest

from fencepost.battery.speed import LEAST_HZ, MOST_HZ, BatteryLoad, Speed


def test_members_that_wait_get_seventy_percent_of_what_all_can_do() -> None:
    load = BatteryLoad.of(Speed(per_s=100, busy=0.01, offered_per_s=3000), members=3, cores=2)
    assert load.rate_hz == 210
    assert "70 % of what 3 members can do" in load.why


def test_members_that_compute_share_the_cores() -> None:
    assert Speed(per_s=100, busy=1.0, offered_per_s=3000).of_group(members=3, cores=2) == 100
    assert Speed(per_s=100, busy=0.5, offered_per_s=3000).of_group(members=3, cores=2) == 200


@pytest.mark.parametrize(("per_s", "rate_hz"), [(100_000, MOST_HZ), (0.1, LEAST_HZ), (0, LEAST_HZ)])
def test_the_load_has_bounds(per_s: float, rate_hz: float) -> None:
    load = BatteryLoad.of(Speed(per_s, 0.0, offered_per_s=3000), members=3, cores=2)
    assert load.rate_hz == rate_hz


def test_a_member_that_processed_all_that_there_was_may_be_faster() -> None:
    assert "at least 2,900" in BatteryLoad.of(Speed(2900, 0.1, 3000), 3, 2).why
    assert "at least" not in BatteryLoad.of(Speed(290, 0.1, 3000), 3, 2).why
