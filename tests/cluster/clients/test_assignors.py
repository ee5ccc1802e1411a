"""What assignors do to a group that grows, on a real cluster: how many partitions move, and how evenly they lie.

The tables are known for 8 partitions and 1 to 4 members, whichever client's leader assigns. Range and round-robin start
anew each time; the sticky ones move what they must, which is the optimum.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

import pytest

from cluster.plans import topic, under
from fencepost.faults import ScaleOut
from fencepost.model import Validity, Verdict
from fencepost.model.clients import KNOWN, LINES, VERIFIABLE
from fencepost.model.settings import STRATEGY
from fencepost.model.topic import Topic
from fencepost.plugin import ChaosRun
from fencepost.scenario import loader
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import idle
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.chaos, pytest.mark.cluster, pytest.mark.spark]

OPTIMUM = [4, 2, 2]
DELAY_NS = 3_000_000_000  # Kafka's default, and that of ``first_join_delayed``
MOVES = {"range": [4, 3, 5], "roundrobin": [4, 4, 5], "sticky": OPTIMUM, "cooperative-sticky": OPTIMUM}
# Assignors of clients, as the client's name and the assignor's.
OF_CLIENTS = {
    f"{library.name}, {assignor}": (
        assignor,
        Group(client=library.name, protocol=protocol, config={STRATEGY: assignor}),
    )
    for library in KNOWN.values()
    for protocol, assignors in library.assignors.items()
    for assignor in assignors
    if library.name != LINES and not library.silent  # those are no client
}
GROWING = {
    **{name: (group, MOVES[assignor]) for name, (assignor, group) in OF_CLIENTS.items()},
    "uniform, by the brokers": (Group(protocol="consumer"), OPTIMUM),
    # How many move depends on the order of ids that members draw.
    "range, by the brokers": (Group(protocol="consumer", config={"group.remote.assignor": "range"}), None),
}
DEALT = {"range": (4, 0), "roundrobin": (3, 2)}
NARROW = {
    name: (group, DEALT[assignor])
    for name, (assignor, group) in OF_CLIENTS.items()
    if assignor in DEALT and group.client != VERIFIABLE  # that reads one topic
}


def grown(group: Group, topics: tuple[Topic, ...], sizes: int) -> Scenario:
    """A group of one member to which others come, each once the one before it has its partitions."""
    joins = tuple(at(1 + 9 * number, ScaleOut(joined_within_s=8), idle()) for number in range(sizes - 1))
    return Scenario(
        name="a group that grows",
        topics=topics,
        brokers=1,
        group=replace(group, members=1, config={"session.timeout.ms": 6000, **group.config}, spare=sizes - 1),
        workload=PollLoop(rate_hz=200),
        schedule=joins,
        min_records=1,
    )


def of_sizes(verdict: Verdict, name: str) -> list[list[int]]:
    """What rebalances say under ``name``, for each size of the group from 2 on; in the end it shrinks again."""
    found = defaultdict(list)
    for one in verdict.rebalances:
        found[len(one["members"]), one["step"]].append(one[name])
    return [found[size, size - 2] for size in range(2, 5) if (size, size - 2) in found]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", GROWING)
def test_so_many_partitions_move_as_members_come(chaos: Any, name: str) -> None:
    group, moves = GROWING[name]
    verdict = chaos.run(grown(group, (topic("orders", 8),), 4)).verdict
    assert verdict.validity is Validity.VALID, verdict
    if moves:
        assert [sum(moved) for moved in of_sizes(verdict, "moved")] == moves
    assert [most[-1] for most in of_sizes(verdict, "most")] == [4, 3, 2]
    assert [least[-1] for least in of_sizes(verdict, "least")] == [4, 2, 2]


def let_in(run: ChaosRun) -> list[dict[str, Any]]:
    """Of each member that came to the empty group the first request to join that was let in, in their order."""
    reported = (run.folder / "history" / "coordinator" / "requests.jsonl").read_text().splitlines()
    joins = [r for r in map(json.loads, reported) if r["api"] == "JOIN_GROUP" and not r["error"]]
    first = dict[str, dict[str, Any]]()
    for join in sorted(joins, key=itemgetter("start_ns")):
        first.setdefault(join["client_id"], join)
    return [join for name, join in first.items() if name != "member-0.1"]


def until_rest(verdict: Verdict) -> int:
    """The generation with which all six were in the group and nothing moved any more; some are over before anybody is
    given anything, and so are not in the log."""
    return max(int(one["generation"]) for one in verdict.rebalances if len(one["members"]) == 6)


@pytest.mark.timeout(360)
@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_who_comes_to_an_empty_group_is_waited_for_where_its_first_rebalance_is_delayed(
    chaos: Any, protocol: str
) -> None:
    """Of the classic protocol: a join storm is one rebalance then. Without the delay it is several: each member is
    started once the one before it has subscribed, which is answered before a process comes to ask."""
    storm, delayed = (
        chaos.run(under(protocol, loader.load(name))) for name in ("first_join_storm", "first_join_delayed")
    )
    assert {run.verdict.validity for run in (storm, delayed)} == {Validity.VALID}
    several, few = let_in(storm), let_in(delayed)
    assert len(several) == len(few) == 6
    assert len({r["answered_generation"] for r in several}) > 1
    assert several[0]["end_ns"] < several[1]["start_ns"], "who is first is not waited with"
    assert until_rest(storm.verdict) >= max(r["answered_generation"] for r in several)
    assert few[0]["end_ns"] - few[0]["start_ns"] > DELAY_NS
    late = sum(after["start_ns"] - before["start_ns"] > DELAY_NS for before, after in pairwise(few))
    assert len({r["answered_generation"] for r in few}) <= 1 + late, "one, where none is too late to be waited for"


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", NARROW)
def test_range_gives_the_third_member_nothing_of_many_narrow_topics(chaos: Any, name: str) -> None:
    group, dealt = NARROW[name]
    topics = tuple(topic(f"narrow-{number}", 2) for number in range(4))
    verdict = chaos.run(grown(group, topics, 3)).verdict
    assert verdict.validity is Validity.VALID, verdict
    assert (of_sizes(verdict, "most")[-1][-1], of_sizes(verdict, "least")[-1][-1]) == dealt
