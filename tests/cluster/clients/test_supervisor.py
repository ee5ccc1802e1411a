"""A supervisor kills whoever does not poll in time, before the group gives its partitions to somebody else; where
members are static, it gives them to nobody.
"""

from __future__ import annotations

import pytest

from cluster.plans import SUSPECT, WATCHED, under
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import NS
from fencepost.model.settings import PROTOCOLS
from fencepost.scenario import loader

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_stands_still_is_killed_before_others_have_its_partitions_and_comes_back(chaos, protocol):
    run = chaos.run(under(protocol, WATCHED))
    run.must_keep_its_promises()
    tables = load(run.folder)
    stopped, again = tables.steps
    assert again.begun_ns > stopped.undone_ns
    life, next_life = (tables.lives[f"member-{SUSPECT}.{number}"] for number in (1, 2))
    assert life.how == "killed"
    assert stopped.begun_ns < life.ended_ns < stopped.begun_ns + 3 * NS, "within its session"
    assert life.ended_ns < next_life.started_ns < stopped.undone_ns, "nobody waits for the pause to be over"
    had = {i.tp for i in tables.intervals if i.incarnation == life.incarnation and i.how == "died"}
    taken = [g for g in tables.given if g.tp in had and g.at_ns > stopped.begun_ns and g.incarnation]
    assert had <= {g.tp for g in taken}
    assert all(g.at_ns > life.ended_ns for g in taken if g.incarnation != life.incarnation)


def test_a_static_member_that_is_killed_for_it_is_back_within_its_session_and_nobody_ever_has_what_it_had(chaos):
    run = chaos.run(loader.load("supervisor_of_static_members"))
    run.must_keep_its_promises()
    tables = load(run.folder)
    (stopped,) = tables.steps
    first, second = (f"member-{SUSPECT}.{number}" for number in (1, 2))
    assert tables.lives[first].how == "killed"
    assert stopped.begun_ns < tables.lives[first].ended_ns < tables.lives[second].started_ns < stopped.undone_ns
    had = {i.tp for i in tables.intervals if i.incarnation == first and i.how == "died"}
    assert had
    owners = {g.incarnation for g in tables.given if g.tp in had and g.at_ns > stopped.begun_ns and g.incarnation}
    assert owners <= {first, second}
    assert not [one for one in run.verdict.rebalances if stopped.begun_ns < one["begin_ns"] < stopped.undone_ns]
