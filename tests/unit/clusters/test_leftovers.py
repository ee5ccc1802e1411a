"""What runs left in a cluster of another owner, by run."""

from __future__ import annotations

import pytest

from fencepost.clusters.attach.leftovers import Leftover, by_run
from fencepost.clusters.names import FOREIGN
from fencepost.clusters.selection import existing
from fencepost.errors import ScenarioError

ONE, OTHER = "fencepost-0badcafe-", "fencepost-11111111-"


def test_names_are_listed_by_the_prefix_of_their_run() -> None:
    topics = [f"{OTHER}orders", f"{ONE}orders", f"{ONE}refunds"]
    groups = {f"{ONE}a-guest-7": 0, f"{OTHER}another-8": 3}
    found = by_run("fencepost-", topics, groups)
    assert found == [
        Leftover(ONE, [f"{ONE}orders", f"{ONE}refunds"], {f"{ONE}a-guest-7": 0}),
        Leftover(OTHER, [f"{OTHER}orders"], {f"{OTHER}another-8": 3}),
    ]
    assert [run.in_use for run in found] == [False, True]


@pytest.mark.parametrize("name", ["fencepost-orders", "fencepost-0badcaf-orders", "my-fencepost-0badcafe-orders", "x"])
def test_names_of_another_form_are_no_runs(name: str) -> None:
    assert by_run("fencepost-", [name], {name: 1}) == []


def test_the_teams_prefix_is_taken_literally() -> None:
    assert by_run("shop.", ["shop-0badcafe-orders"], {}) == []
    assert [run.prefix for run in by_run("shop.", ["shop.0badcafe-orders"], {})] == ["shop.0badcafe-"]


def test_a_back_end_with_new_clusters_has_nothing_to_clean() -> None:
    with pytest.raises(ScenarioError) as refused:
        existing("local")
    assert str(refused.value).endswith(f"name a cluster that exists, as {FOREIGN}")
