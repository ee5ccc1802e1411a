"""Resolves the target of a step at the moment it fires."""

from __future__ import annotations

from fencepost.errors import FencepostError
from fencepost.interfaces import FaultContext, Gated, Target
from fencepost.interfaces.group_snapshot import StateMatch
from fencepost.schedule.plan import Step


def resolve_target(step: Step, world: FaultContext, occurrence: StateMatch | None) -> tuple[Target, list[str]] | str:
    """The target of ``step`` and the incarnations that it hits; a sentence if there is no target, or not yet.

    A step that waited for a protocol state hits what was seen in that state, without another look at the cluster: the
    state may last only a millisecond.
    """
    if step.target is None and occurrence is not None:
        return (occurrence.target, list(occurrence.incarnations)) if step.hits else (Target(), [])
    try:
        view = world.view()
        target = Target() if step.target is None else step.target.resolve(view, step.pick)
        awaited = step.fault.not_ready_reason(world, target) if target and isinstance(step.fault, Gated) else ""
    except FencepostError as error:
        return f"the state of the cluster could not be read: {error}"
    if target is None or awaited:
        return awaited or f"nothing matched {step.target}"
    hit = (m for m in view.members if m.alive and m.index in target.members)
    return target, [name for m in hit for name in m.consumers or (m.incarnation,)]
