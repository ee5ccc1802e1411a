"""The injector fires, proves, heals and undoes; what it cannot prove it says, and nothing keeps it from undoing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from fencepost.clock import NS, eventually, now_ns
from fencepost.errors import WaitTimeout
from fencepost.injector import Injector
from fencepost.interfaces import Evidence
from fencepost.model import MemberView, View
from fencepost.schedule import at, make_plan
from fencepost.targets import member, one_member
from fencepost_member.events import EventLog


@dataclass(frozen=True)
class Scripted:
    """A fault whose story is told in advance; it writes what is done with it to ``diary``."""

    name: str
    diary: list[str] = field(default_factory=list, compare=False)
    proves: bool | Exception = True
    undo_fails: bool = False
    needs: ClassVar[frozenset[str]] = frozenset()
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True

    def inject(self, world, target):
        self.diary.append(f"{self.name} hits {target}")
        return ScriptedInjection(self)


@dataclass(frozen=True)
class ScriptedInjection:
    fault: Scripted

    def proven(self):
        if isinstance(self.fault.proves, Exception):
            raise self.fault.proves
        return Evidence(self.fault.proves, now_ns(), "seen" if self.fault.proves else "nothing was seen")

    def undo(self):
        self.fault.diary.append(f"{self.fault.name} undone")
        if self.fault.undo_fails:
            raise RuntimeError("the proxy is gone")

    def healed(self):
        return Evidence(True, now_ns(), "gone")


class Group:
    """A world of three members, of which the last is dead; the first ``unseen`` looks at it fail."""

    def __init__(self):
        self.disturbed = set()
        self.unseen = 0

    def view(self):
        if self.unseen:
            self.unseen -= 1
            raise WaitTimeout("no broker answered")
        members = tuple(MemberView(n, n, f"member-{n}.1", n < 2, n in self.disturbed) for n in range(3))
        return View(members, (1, 2, 3), {}, 1, "g")


@pytest.fixture
def perform(tmp_path):
    def start(*entries):
        group, events = Group(), EventLog(str(tmp_path / "harness.jsonl"), "harness")
        injector = Injector(make_plan(entries, 1, 6.0), group, events, group.disturbed)
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


def test_one_member_is_never_taken_from_under_another_fault(perform):
    first, second = Scripted("first"), Scripted("second")
    injector, _, _ = perform(at(0, first, one_member(), heal_after=60), at(0, second, one_member(), heal_after=60))
    injector.do_what_is_due()
    assert {first.diary[0][-8:], second.diary[0][-8:]} == {"member-0", "member-1"}
    injector.undo_all()


def test_a_step_whose_target_never_comes_is_not_applicable_and_says_so(perform, monkeypatch):
    monkeypatch.setattr("fencepost.injector.TARGET_WINDOW_S", 0.3)
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
    monkeypatch.setattr("fencepost.injector.now_ns", lambda: int(moved[0] * NS))
    return moved


def test_a_step_is_skipped_with_the_reason_when_the_cluster_stays_unseen_and_the_others_go_on(perform, clock):
    unlucky, lucky = Scripted("first"), Scripted("second")
    injector, group, events = perform(at(0, unlucky, member(0)), at(60, lucky, member(1)))
    group.unseen = 2
    for clock[0] in (0, 30, 60):
        injector.do_what_is_due()
    (skipped,) = (e["detail"] for e in events() if e["kind"] == "skipped")
    assert (skipped["step"], skipped["reason"]) == (0, "the cluster could not be looked at: no broker answered")
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
    ("error", "told"),
    [
        (WaitTimeout("no broker answered"), "no broker answered"),
        (ProcessLookupError("no such process"), "ProcessLookupError: no such process"),
    ],
    ids=["of Fencepost", "of the system"],
)
def test_a_witness_that_fails_leaves_the_step_unproven_and_it_is_healed_all_the_same(perform, error, told):
    fault = Scripted("pause", proves=error)
    injector, _, events = perform(at(0, fault, member(0), heal_after=0))
    until_finished(injector)
    assert fault.diary == ["pause hits member-0", "pause undone"]
    assert [(e["kind"], e["outcome"]) for e in events()] == [("fault", "info"), ("healed", "ok")]
    assert events()[0]["detail"]["evidence"]["what"] == f"could not be proven: {told}"
