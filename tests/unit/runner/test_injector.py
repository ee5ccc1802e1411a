"""The injector fires, proves, heals and undoes; what it cannot prove it says, and nothing keeps it from undoing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from fencepost.clock import NS, eventually, now_ns
from fencepost.errors import FaultError, WaitTimeout
from fencepost.interfaces import Evidence
from fencepost.interfaces.group_snapshot import CoordinatorStatus, GroupSnapshot, MemberStatus
from fencepost.model import MemberView, View
from fencepost.model.impact import Impact
from fencepost.model.settings import SESSION
from fencepost.runner.injector import Injector
from fencepost.schedule.entries import at, until, when
from fencepost.schedule.planning import make_plan
from fencepost.states import commit_in_flight, fenced, joining, revoking
from fencepost.targets import all_members, member, one_member
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost_member.recording.events import EventLog


@dataclass(frozen=True)
class Scripted:
    """A fault whose story is told in advance; it writes what is done with it to ``diary``."""

    name: str
    diary: list[str] = field(default_factory=list, compare=False)
    proves: bool | Exception | Callable[[], bool] = True
    gone: Callable[[], bool] = lambda: True
    within_s: float = 5
    undo_fails: bool = False
    needs: ClassVar[frozenset[str]] = frozenset()
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = ""

    def inject(self, world, target):
        self.diary.append(f"{self.name} hits {target}")
        return ScriptedInjection(self)


@dataclass(frozen=True)
class ScriptedInjection:
    fault: Scripted

    def proven(self):
        if isinstance(self.fault.proves, Exception):
            raise self.fault.proves
        if callable(self.fault.proves):
            return self.seen(self.fault.proves)
        return Evidence(self.fault.proves, now_ns(), "seen" if self.fault.proves else "nothing was seen")

    def undo(self):
        self.fault.diary.append(f"{self.fault.name} undone")
        if self.fault.undo_fails:
            raise RuntimeError("the proxy is gone")

    def healed(self):
        return self.seen(self.fault.gone)

    def seen(self, probe):
        return witness(lambda: Observation("" if probe() else "nothing was seen", "seen"), self.fault.within_s)


class Group:
    """A world of three members, of which the last is dead; the first ``unseen`` looks at it fail."""

    def __init__(self):
        self.disturbed = set()
        self.unseen = 0
        self.signed = []
        self.coordinator = None
        self.consumers = {}

    def signs(self):
        return GroupSnapshot(tuple(self.signed), self.coordinator)

    def view(self):
        if self.unseen:
            self.unseen -= 1
            raise WaitTimeout("no broker answered")
        members = tuple(
            MemberView(n, n, f"member-{n}.1", n < 2, n in self.disturbed, consumers=self.consumers.get(n, ()))
            for n in range(3)
        )
        return View(members, (1, 2, 3), {}, 1)


@pytest.fixture
def perform(tmp_path):
    def start(*entries):
        group, events = Group(), EventLog(str(tmp_path / "harness.jsonl"), "harness")
        injector = Injector(make_plan(entries, 1, {SESSION: 6.0}), group, events, group.disturbed, group.signs)
        injector.begin()
        return injector, group, lambda: read(tmp_path / "harness.jsonl")

    return start


def read(path):
    """The events of a log, the last line of each id."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return list({line["id"]: line for line in lines}.values())


def until_finished(injector):
    def probe():
        injector.do_what_is_due()
        return injector.finished

    eventually(probe, 10, "all steps to be done", state=lambda: str(injector.states))


def test_a_step_is_fired_proven_and_healed_and_each_leaves_an_event(perform):
    fault = Scripted("pause")
    injector, group, events = perform(at(0, fault, member(1), heal_after=0.05))
    injector.do_what_is_due()
    assert group.disturbed == {1}
    until_finished(injector)
    assert fault.diary == ["pause hits member-1", "pause undone"]
    assert [(e["kind"], e["outcome"], e["detail"]["members"]) for e in events()] == [
        ("fault", "ok", ["member-1.1"]),
        ("healed", "ok", ["member-1.1"]),
    ]
    assert group.disturbed == set()
    assert injector.states[0].state == "healed"


@dataclass(frozen=True)
class Freezing(Scripted):
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.FREEZES, Impact.DELAYS})


@pytest.mark.parametrize(("fault", "impact"), [(Scripted("cut"), []), (Freezing("mine"), ["delays", "freezes"])])
def test_the_events_of_a_fault_record_what_it_does_to_members(perform, fault, impact):
    injector, _, events = perform(at(0, fault, member(1), heal_after=0))
    until_finished(injector)
    assert [(e["kind"], e["detail"]["impact"]) for e in events()] == [("fault", impact), ("healed", impact)]


@pytest.mark.parametrize(("waits", "undone"), [("proves", ["pause", "stall"]), ("gone", ["stall", "pause"])])
def test_a_fault_is_healed_in_time_while_another_one_waits_to_be_seen_or_gone(perform, waits, undone):
    pause = Scripted("pause")
    stall = Scripted("stall", pause.diary, **{waits: lambda: "pause undone" in pause.diary})
    injector, *_ = perform(at(0, pause, member(1), heal_after=0.05), at(0, stall, member(0), heal_after=0))
    until_finished(injector)
    assert [s.state for s in injector.states] == ["healed", "healed"]
    assert pause.diary == ["pause hits member-1", "stall hits member-0", *(f"{name} undone" for name in undone)]


def test_what_is_healed_meanwhile_takes_no_time_from_the_proof_that_waits(perform):
    since, looks = [], []

    def gone():
        since[:] = since or [injector.elapsed_s]
        return injector.elapsed_s > since[0] + 0.4  # longer than the other one may look

    def looked():
        looks.append(injector.elapsed_s)
        return len(looks) > 2

    slow = Scripted("slow", gone=gone)
    quick = Scripted("quick", slow.diary, gone=looked, within_s=0.3)
    injector, *_ = perform(at(0, quick, member(0), heal_after=0), at(0, slow, member(1), heal_after=0))
    until_finished(injector)
    assert [s.state for s in injector.states] == ["healed", "healed"]


def test_no_step_fires_while_another_one_waits_for_its_proof(perform):
    first, looks = Scripted("first"), []

    def proven():
        looks.append(len(first.diary))
        return injector.elapsed_s > 0.1

    slow = Scripted("slow", first.diary, proves=proven)
    injector, *_ = perform(at(0, slow, member(1), heal_after=0), at(0.05, first, member(0), heal_after=0))
    until_finished(injector)
    assert set(looks) == {1}
    assert [s.state for s in injector.states] == ["healed", "healed"]


@pytest.mark.parametrize(
    ("lasts_s", "order"),
    [
        (0.1, ["first hits member-0", "first undone", "second hits member-1", "second undone"]),
        (0.15, ["first hits member-0", "second hits member-1", "second undone", "first undone"]),  # meant to meet
    ],
)
def test_what_was_planned_for_after_the_end_of_another_fault_comes_after_it_however_late(perform, lasts_s, order):
    first = Scripted("first", proves=lambda: injector.elapsed_s > 0.3)
    second = Scripted("second", first.diary)
    injector, *_ = perform(at(0, first, member(0), heal_after=lasts_s), at(0.1, second, member(1), heal_after=0))
    until_finished(injector)
    assert first.diary == order
    assert [s.state for s in injector.states] == ["healed", "healed"]


def test_a_fault_of_a_process_hits_all_consumers_in_it(perform):
    injector, group, events = perform(at(0, Scripted("kill"), all_members(), heal_after=0))
    group.consumers = {0: ("member-0.1", "member-0b.1")}
    until_finished(injector)
    assert events()[0]["detail"]["members"] == ["member-0.1", "member-0b.1", "member-1.1"]


def test_a_fault_without_its_witness_is_recorded_as_unproven_and_stays_so_after_healing(perform):
    injector, _, events = perform(at(0, Scripted("pause", proves=False), member(0), heal_after=0))
    until_finished(injector)
    assert [(e["kind"], e["outcome"]) for e in events()] == [("fault", "info"), ("healed", "ok")]
    assert injector.states[0].state == "unproven"


def test_everything_is_undone_in_reverse_order_even_when_one_undo_fails(perform):
    diary: list[str] = []
    injector, _, events = perform(
        at(0, Scripted("first", diary), member(0), heal_after=60),
        at(0, Scripted("second", diary, undo_fails=True), member(1), heal_after=60),
        at(0, Scripted("third", diary), member(0), heal_after=60),
        at(50, Scripted("never", diary), member(0)),
    )

    def interrupted():
        with injector.undone_on_exit():
            injector.do_what_is_due()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert diary[3:] == ["third undone", "second undone", "first undone"]
    assert [e["outcome"] for e in events() if e["kind"] == "healed"] == ["ok", "info", "ok"]
    assert injector.finished


@dataclass(frozen=True)
class Awaiting(Scripted):
    """One that cannot be injected as long as there are ``reasons``."""

    reasons: list[str] = field(default_factory=list, compare=False)

    def not_ready_reason(self, world, target):
        return self.reasons.pop() if self.reasons else ""


@dataclass(frozen=True)
class OverAtOnce(Scripted):
    """One that has nothing to heal."""

    heals: ClassVar[bool] = False


@dataclass(frozen=True)
class Declared(Scripted):
    """One that is a declared act, unless it is refused."""

    refused: bool = False
    heals: ClassVar[bool] = False

    def inject(self, world, target):
        if self.refused:
            raise FaultError("there is nothing to do")
        at_ns = now_ns()
        return CallbackInjection(
            proven=lambda: Evidence(self.proves, at_ns, "seen"), acts=[("orders", 0), ("orders", 3)]
        )


@pytest.mark.parametrize("proves", [True, False])
def test_a_declared_act_leaves_an_event_from_when_it_began_whether_or_not_it_is_proven(perform, proves):
    injector, _, events = perform(at(0, Declared("reset", proves=proves), member(0)))
    until_finished(injector)
    fault, act = sorted(events(), key=lambda e: e["id"])
    assert (act["kind"], act["detail"]) == ("act", {"what": "declared"})
    assert act["partitions"] == [["orders", 0, None], ["orders", 3, None]]
    assert fault["begin_ns"] <= act["begin_ns"] < fault["detail"]["evidence"]["at_ns"] <= act["end_ns"]


def test_one_that_was_refused_is_no_act(perform):
    injector, _, events = perform(at(0, Declared("reset", refused=True), member(0)))
    until_finished(injector)
    assert [e["kind"] for e in events()] == ["fault"]


def test_a_fault_that_cannot_be_injected_yet_is_tried_again(perform):
    fault = Awaiting("remove", reasons=["not yet", "not yet"])
    injector, _, events = perform(at(0, fault, member(0), heal_after=0))
    until_finished(injector)
    assert not fault.reasons
    assert [(e["kind"], e["outcome"]) for e in events()] == [("fault", "ok"), ("healed", "ok")]


def test_a_fault_that_can_never_be_injected_is_skipped_and_says_why(perform, monkeypatch):
    monkeypatch.setattr("fencepost.runner.injector.TARGET_WINDOW_S", 0.3)
    fault = Awaiting("remove", reasons=["nobody is in the group"] * 1000)
    injector, _, events = perform(at(0, fault, member(0), heal_after=0))
    until_finished(injector)
    assert fault.diary == []
    assert [(e["kind"], e["detail"]["reason"]) for e in events()] == [("skipped", "nobody is in the group for 0.3 s")]


def test_what_is_over_at_once_frees_no_member_that_another_fault_still_holds(perform):
    injector, group, _ = perform(
        at(0, Scripted("pause"), member(0), heal_after=60), at(0, OverAtOnce("cut"), all_members())
    )
    injector.do_what_is_due()
    assert [state.state for state in injector.states] == ["in-effect", "done"]
    assert group.disturbed == {0}
    injector.undo_all()
    assert group.disturbed == set()


def test_one_member_is_never_taken_from_under_another_fault(perform):
    first, second = Scripted("first"), Scripted("second")
    injector, _, _ = perform(at(0, first, one_member(), heal_after=60), at(0, second, one_member(), heal_after=60))
    injector.do_what_is_due()
    assert {first.diary[0][-8:], second.diary[0][-8:]} == {"member-0", "member-1"}
    injector.undo_all()


def test_a_step_whose_target_never_comes_is_not_applicable_and_says_so(perform, monkeypatch):
    monkeypatch.setattr("fencepost.runner.injector.TARGET_WINDOW_S", 0.3)
    fault = Scripted("pause")
    injector, _, events = perform(at(0, fault, member(2)))
    until_finished(injector)
    assert fault.diary == []
    assert [(e["kind"], e["detail"]["step"]) for e in events()] == [("skipped", 0)]
    assert injector.states[0].state == "not-applicable"


def test_a_step_waits_for_a_cluster_that_cannot_be_looked_at(perform):
    fault = Scripted("pause")
    injector, group, _ = perform(at(0, fault, member(1), heal_after=0))
    group.unseen = 2
    until_finished(injector)
    assert fault.diary == ["pause hits member-1", "pause undone"]
    assert injector.states[0].state == "healed"


@pytest.fixture
def clock(monkeypatch):
    """Moved by hand, in seconds."""
    moved = [0.0]
    monkeypatch.setattr("fencepost.runner.injector.now_ns", lambda: int(moved[0] * NS))
    return moved


def test_a_step_is_skipped_with_the_reason_when_the_cluster_stays_unseen_and_the_others_go_on(perform, clock):
    unlucky, lucky = Scripted("first"), Scripted("second")
    injector, group, events = perform(at(0, unlucky, member(0)), at(60, lucky, member(1)))
    group.unseen = 2
    for clock[0] in (0, 30, 60):
        injector.do_what_is_due()
    (skipped,) = (e["detail"] for e in events() if e["kind"] == "skipped")
    assert skipped["step"] == 0
    assert skipped["reason"].startswith("the state of the cluster could not be read: no broker answered for")
    assert (unlucky.diary, lucky.diary) == ([], ["second hits member-1"])


def test_a_step_that_comes_late_has_its_whole_window_to_find_a_target(perform, clock):
    fault = Scripted("pause")
    injector, group, _ = perform(at(1, fault, member(0)))
    group.unseen = 1
    clock[0] = 60  # others took so long
    injector.do_what_is_due()
    assert injector.states[0].state == "pending"
    clock[0] = 61
    injector.do_what_is_due()
    assert fault.diary == ["pause hits member-0"]


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (WaitTimeout("no broker answered"), "no broker answered"),
        (ProcessLookupError("no such process"), "ProcessLookupError: no such process"),
    ],
    ids=["of Fencepost", "of the system"],
)
def test_a_witness_that_fails_leaves_the_step_unproven_and_it_is_healed_all_the_same(perform, error, reported):
    fault = Scripted("pause", proves=error)
    injector, _, events = perform(at(0, fault, member(0), heal_after=0))
    until_finished(injector)
    assert fault.diary == ["pause hits member-0", "pause undone"]
    assert [(e["kind"], e["outcome"]) for e in events()] == [("fault", "info"), ("healed", "ok")]
    assert events()[0]["detail"]["evidence"]["what"] == f"could not be proven: {reported}"


def in_callback(index, since_ns, **more):
    return MemberStatus(index, f"member-{index}.1", alive=True, open={"revoked": since_ns}, **more)


def test_a_step_waits_for_its_state_and_hits_who_is_in_it(perform):
    fault = Scripted("pause")
    injector, group, events = perform(when(revoking(), fault, heal_after=0))
    injector.do_what_is_due()
    assert (fault.diary, injector.finished) == ([], False)
    group.signed = [MemberStatus(0, "member-0.1", alive=True), in_callback(1, 77)]
    group.coordinator = CoordinatorStatus(1, loading={2: 5})
    group.unseen = 100  # nobody has the time to look at the cluster
    until_finished(injector)
    assert fault.diary == ["pause hits member-1", "pause undone"]
    detail = events()[0]["detail"]
    assert (detail["target"], detail["members"]) == ("member-1", ["member-1.1"])
    assert detail["when"] == {"state": "revoking", "since_ns": 77, "met": True}
    assert {name for name, so in detail["states"].items() if so} == {"revoking", "coordinator_loading"}


def test_a_state_that_was_over_when_the_fault_was_there_was_not_met(perform):
    class Late(Scripted):
        def inject(self, world, target):
            world.signed = []
            return super().inject(world, target)

    injector, group, events = perform(when(revoking(), Late("pause"), heal_after=0))
    group.signed = [in_callback(1, 77)]
    until_finished(injector)
    assert events()[0]["detail"]["when"]["met"] is False


def test_a_member_that_a_fault_has_in_its_hands_triggers_nothing(perform):
    injector, group, _ = perform(when(revoking(), Scripted("pause"), heal_after=0))
    group.signed = [in_callback(1, 77, disturbed=True)]
    injector.do_what_is_due()
    assert injector.states[0].state == "pending"


def test_a_selector_chooses_although_somebody_else_is_in_the_state(perform):
    fault = Scripted("pause")
    injector, group, _ = perform(when(revoking(), fault, member(0), heal_after=0))
    group.signed = [in_callback(1, 77)]
    until_finished(injector)
    assert fault.diary == ["pause hits member-0", "pause undone"]


def test_a_selector_that_finds_nobody_while_the_state_lasts_is_not_asked_again(perform):
    fault = Scripted("pause")
    injector, group, events = perform(when(revoking(), fault, member(2), heal_after=0))
    group.signed = [in_callback(1, 77)]
    until_finished(injector)
    assert (fault.diary, events()[0]["kind"]) == ([], "skipped")


def test_a_state_that_does_not_come_is_waited_for_as_long_as_was_said(perform):
    fault = Scripted("pause")
    injector, _, events = perform(when(joining(), fault, member(0), within_s=0.05, heal_after=0))
    until_finished(injector)
    assert (fault.diary, injector.states[0].state) == ([], "not-applicable")
    assert events()[0]["detail"]["reason"] == "the state joining was not seen within 0.05 s"


def test_a_step_is_healed_when_its_state_has_come_for_whom_it_hit(perform):
    fault = Scripted("pause")
    injector, group, events = perform(at(0, fault, member(1), heal_after=until(fenced(), 60)))
    injector.do_what_is_due()
    group.signed = [MemberStatus(0, "member-0.1", True, lost_ns=now_ns()), MemberStatus(1, "member-1.1", True, True)]
    injector.do_what_is_due()
    assert fault.diary == ["pause hits member-1"]
    lost_ns = now_ns()
    group.signed[1] = MemberStatus(1, "member-1.1", True, True, lost_ns=lost_ns)
    until_finished(injector)
    assert fault.diary == ["pause hits member-1", "pause undone"]
    assert events()[1]["detail"]["until"] == {"state": "fenced", "since_ns": lost_ns}


def test_a_state_that_never_comes_keeps_nobody_from_being_healed(perform):
    fault = Scripted("pause")
    injector, group, events = perform(at(0, fault, member(1), heal_after=until(fenced(), 0.05)))
    group.signed = [MemberStatus(1, "member-1.1", True, lost_ns=1)]  # long ago
    until_finished(injector)
    assert fault.diary == ["pause hits member-1", "pause undone"]
    assert events()[1]["detail"]["until"] == {"state": "fenced", "since_ns": 0}


def test_what_waits_for_a_state_is_given_up_with_everything_else(perform):
    injector, _, _ = perform(
        when(commit_in_flight(), Scripted("kill"), within_s=60, heal_after=0),
        at(0, Scripted("pause"), member(0), heal_after=until(fenced(), 60)),
    )
    injector.do_what_is_due()
    injector.undo_all()
    assert injector.finished
    assert [state.state for state in injector.states] == ["pending", "healed"]
