"""The grid of protocol states and faults counts what was really met."""

from __future__ import annotations

from fencepost.model import serialization
from fencepost.reports.coverage import NONE, grid
from fencepost.reports.fault_records import faults
from fencepost.reports.folder import Fact
from fencepost.schedule.protocol_states import LASTING

QUIET = {serialization.name_of(state): False for state in LASTING}
UNKNOWN = {**QUIET, "joining": None, "syncing": None, "coordinator_loading": None}


def fact(step, fault, states, kind="fault", **detail):
    reported = {"step": step, "fault": fault, "target": "member-1", "states": states, **detail}
    return Fact(kind, "harness", step, 1_000_000_000, 2_000_000_000, "", -1, -1, "ok", reported)


FACTS = [
    fact(0, "pause", {**QUIET, "revoking": True, "joining": True}),
    fact(1, "kill", QUIET),
    fact(2, "pause", {**QUIET, "revoking": True}),
    fact(3, "kill", UNKNOWN),
]


def test_each_fault_is_counted_in_each_state_that_it_met():
    found = grid(faults(FACTS, {}), "eager")
    assert found.faults == [("pause", 2), ("kill", 2)]
    assert dict(found.rows) == {
        "joining": [1, 0],
        "syncing": [0, 0],
        "assigning": [0, 0],
        "revoking": [2, 0],
        "commit_in_flight": [0, 0],
        "coordinator_loading": [0, 0],
        NONE: [0, 1],
    }


def test_unknown_states_are_not_shown_as_never():
    found = dict(grid(faults(FACTS[3:], {}), "eager").rows)
    assert (found["joining"], found["revoking"], found[NONE]) == ([None], [0], [None])


def test_states_that_a_protocol_does_not_have_are_left_out():
    assert {"joining", "syncing"} & {state for state, _ in grid(faults(FACTS, {}), "consumer").rows} == set()


def test_runs_of_older_releases_have_no_grid():
    assert grid(faults([fact(0, "pause", None), fact(1, "kill", {})], {}), "eager") is None
    assert grid([], "eager") is None


def test_a_trigger_is_told_in_words():
    when = {"state": "revoking", "since_ns": 998_500_000, "met": True}
    ended = fact(0, "pause", None, "healed", until={"state": "fenced", "since_ns": 5}, evidence={"what": "runs again"})
    [hit] = faults([fact(0, "pause", QUIET, when=when), ended], {})
    assert hit.trigger == "revoking, 1.5 ms after it had begun; still in it at the injection"
    assert hit.healing == "runs again, because the state fenced was reached"
    late = fact(0, "pause", QUIET, when={**when, "met": False})
    never = ended._replace(detail={**ended.detail, "until": {"state": "fenced", "since_ns": 0}})
    [missed] = faults([late, never], {})
    assert missed.trigger.endswith("no longer in it at the injection")
    assert missed.healing == "runs again; the state fenced was not reached"
