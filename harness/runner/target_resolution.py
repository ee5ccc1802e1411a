"""What a step hits, looked up at the moment it fires."""

from __future__ import annotations

from fencepost.errors import FencepostError
from fencepost.interfaces import Awaits, Target, World
from fencepost.interfaces.signs import Occurrence
from fencepost.schedule.plan import Step


def aim(step: Step, world: World, occurrence: Occurrence | None) -> tuple[Target, list[str]] | str:
    """What ``step`` hits, and the lives that are hit; a sentence when there is nothing, or not yet.

    Who is in the state that it waited for is hit without another look: that may be over in a millisecond.
    """
    if step.target is None and occurrence is not None:
        return (occurrence.target, list(occurrence.incarnations)) if step.hits else (Target(), [])
    try:
        view = world.view()
        target = Target() if step.target is None else step.target.resolve(view, step.pick)
        awaited = step.fault.awaits(world, target) if target and isinstance(step.fault, Awaits) else ""
    except FencepostError as error:
        return f"the cluster could not be looked at: {error}"
    if target is None or awaited:
        return awaited or f"nothing matched {step.target}"
    hit = (m for m in view.members if m.alive and m.index in target.members)
    return target, [name for m in hit for name in m.consumers or (m.incarnation,)]
