"""Smaller cases of a failing one: the proposals of shrinking, in order.

Nothing is performed here: ``search`` proposes one case at a time and is sent whether that one fails too. The passes
follow delta debugging (Zeller and Hildebrandt, IEEE TSE 28(2), 2002), adapted to plans: each begins with its boldest
proposal, and continues as long as one of its proposals fails.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fencepost.errors import ScenarioError
from fencepost.interfaces import Fault, Selector
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.entries import as_schedule
from fencepost.schedule.plan import Plan, Step, min_duration_s
from fencepost.schedule.selectors import AllMembers, Members, OneMember

BREATH_S = 1.0  # between two steps that are moved together
SHORTEST_S = 0.5  # of a fault; shorter ones bring no benefit


@dataclass(frozen=True)
class Case:
    """A scenario and a plan. The scenario's schedule is made from the plan, so that both describe the same steps."""

    scenario: Scenario
    plan: Plan

    @classmethod
    def of(cls, scenario: Scenario, plan: Plan) -> Case:
        """The case of a plan, even if it cannot be performed in that scenario."""
        return cls(replace(scenario, schedule=as_schedule(plan)), plan)

    def __str__(self) -> str:
        partitions = sum(topic.partitions for topic in self.scenario.topics)
        parts = [(len(self.plan.steps), "steps"), (self.scenario.group.size, "members"), (partitions, "partitions")]
        return ", ".join(f"{count} {nouns if count != 1 else nouns[:-1]}" for count, nouns in parts)


@dataclass(frozen=True)
class Proposal:
    """A smaller case, and a description of the difference."""

    what: str
    case: Case


Change = tuple[str, dict[str, Any], list[Step]]  # in words, the changed fields of the scenario, and all steps
Pass = Callable[[Case], Generator[Change, bool, None]]  # is sent whether its last change was kept
Search = Generator[Proposal, bool, Case]


def search(case: Case) -> Search:
    """Propose smaller cases until no pass has one that fails; return the smallest. No case is proposed twice.

    The caller sends whether the last proposal failed.
    """
    known = [case]
    while True:
        before = case
        for one_pass in PASSES:
            case = yield from _performed(one_pass, case, known)
        if case == before:
            return case


def _performed(one_pass: Pass, case: Case, known: list[Case]) -> Search:
    changes, seed = one_pass(case), case.plan.seed
    change = next(changes, None)
    while change:
        what, other, steps = change
        kept = False
        try:
            scenario = replace(case.scenario, **other)
            smaller = Case.of(scenario, scenario.checked(Plan.of(seed, steps)))
        except ScenarioError:
            pass  # it names a member that is gone, or cannot cause what it expects
        else:
            if smaller not in known:
                known.append(smaller)
                kept = yield Proposal(what, smaller)
        case = smaller if kept else case
        try:
            change = changes.send(kept)
        except StopIteration:
            break
    return case


def fewer_steps(case: Case) -> Generator[Change, bool, None]:
    """Remove all steps, then each half, each quarter, ... each step."""
    steps = [*case.plan.steps]
    size = len(steps)
    while size:
        begin = 0
        while begin < len(steps):
            gone, rest = steps[begin : begin + size], steps[:begin] + steps[begin + size :]
            if (yield f"without {_named(gone) if rest else 'any step'}", {}, rest):
                steps = rest
            else:
                begin += size
        size //= 2


def fewer_records(case: Case) -> Generator[Change, bool, None]:
    """Fewer records, so that the chaos ends sooner where steps are few."""
    for records in _less(case.scenario.min_records):
        if (yield f"min_records={records}", {"min_records": records}, [*case.plan.steps]):
            return


def sooner(case: Case) -> Generator[Change, bool, None]:
    """Shorten times in which no fault is in effect: all of them, then one at a time. Overlaps are kept."""
    steps = [*case.plan.steps]
    for way in (range(len(steps)), *([n] for n in range(len(steps)))):
        spare = {n: idle_s for n in way if (idle_s := _idle_s(steps, n)) > 0}
        if spare:
            moved = [
                replace(step, at_s=round(step.at_s - sum(spare.get(m, 0) for m in range(n + 1)), 3))
                for n, step in enumerate(steps)
            ]
            if (yield f"sooner: {_named([steps[n] for n in spare])}", {}, moved):
                steps = moved


def _idle_s(steps: list[Step], number: int) -> float:
    """How long before a step no fault is in effect, without BREATH_S; in seconds."""
    free_s = max((step.end_s + BREATH_S for step in steps[:number]), default=0.0)
    return round(steps[number].at_s - free_s, 3)


def shorter(case: Case) -> Generator[Change, bool, None]:
    """Shorten each fault as much as possible, or by half; it stays long enough for its expectation."""
    times_s, steps = case.scenario.group.gives_up_after_s(), [*case.plan.steps]
    for number, step in enumerate(steps):
        shortest_s = max(SHORTEST_S, min_duration_s(step.fault, step.expect, times_s))
        for heal_after_s in (shortest_s, max(shortest_s, (step.heal_after_s or 0) / 2)):
            if step.heal_after_s and heal_after_s < 0.95 * step.heal_after_s:
                changed = _with(steps, number, heal_after_s=round(heal_after_s, 3))
                if (yield f"{_named([step])} for {heal_after_s:g} s", {}, changed):
                    steps = changed
                    break


def fewer_members(case: Case) -> Generator[Change, bool, None]:
    """One member, half of them, one fewer."""
    group = case.scenario.group
    for members in _less(group.size, group.size - 1):
        if (yield f"members={members}", {"group": group.first(members)}, [*case.plan.steps]):
            return


def fewer_partitions(case: Case) -> Generator[Change, bool, None]:
    """One topic fewer; then for each topic one partition, half of them, one fewer."""
    topics, steps = case.scenario.topics, [*case.plan.steps]
    for topic in case.scenario.topics:
        others = tuple(t for t in topics if t != topic)
        if others and (yield f"without the topic {topic.name}", {"topics": others}, steps):
            topics = others
            continue
        for partitions in _less(topic.partitions, topic.partitions - 1):
            fewer = tuple(replace(t, partitions=partitions) if t == topic else t for t in topics)
            if (yield f"partitions of {topic.name}={partitions}", {"topics": fewer}, steps):
                topics = fewer
                break


def weaker(case: Case) -> Generator[Change, bool, None]:
    """One member instead of several; one direction, or only the coordinator, instead of all links."""
    steps = [*case.plan.steps]
    for number, step in enumerate(steps):
        for field, values in (("target", _weaker_targets(step.target)), ("fault", _weaker_faults(step.fault))):
            for value in values:
                changed = _with(steps, number, **{field: value})
                if (yield f"{_named([step])}: {value}", {}, changed):
                    steps = changed
                    break


def _weaker_faults(fault: Fault) -> Iterator[Any]:
    for name, whole, parts in (("direction", "both", ("to", "from")), ("peers", "", ("coordinator", "others"))):
        if getattr(fault, name, None) == whole:
            yield from (replace(fault, **{name: part}) for part in parts)  # type: ignore[type-var]


def _weaker_targets(target: Selector | None) -> Iterator[Selector]:
    if isinstance(target, AllMembers):
        yield OneMember()
    if isinstance(target, Members) and len(target.indices) > 1:
        yield from (Members((index,)) for index in target.indices)


def _less(count: int, *more: int) -> list[int]:
    """Counts below ``count``, the smallest first."""
    return sorted({number for number in (1, count // 2, *more) if 0 < number < count})


def _with(steps: list[Step], number: int, **changes: Any) -> list[Step]:
    return [*steps[:number], replace(steps[number], **changes), *steps[number + 1 :]]


def _named(steps: list[Step]) -> str:
    """``step 3``, ``steps 3 and 5``, ``steps 3 to 5``."""
    numbers = [step.step for step in steps]
    if len(numbers) == 1:
        return f"step {numbers[0]}"
    adjacent = numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 2
    return f"steps {numbers[0]} to {numbers[-1]}" if adjacent else f"steps {' and '.join(map(str, numbers))}"


PASSES: tuple[Pass, ...] = (fewer_steps, fewer_records, sooner, shorter, fewer_members, fewer_partitions, weaker)
