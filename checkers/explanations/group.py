"""The sentences of the kinds about ownership, rebalances, progress and effects; see ``explanations``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fencepost.checkers.explanations.anomaly_context import AnomalyContext


def _often(t: AnomalyContext) -> str:
    return "" if t.one else f" {t.a.count:,} times"


def _names(members: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(members[:-1]), members[-1]))) if members else "unknown members"


def _overlap(t: AnomalyContext) -> str:
    return f"the coordinator's records assigned {t.place} to {_names(t.a.members)} at once{_often(t)}, {t.span}"


def _regression(t: AnomalyContext) -> str:
    often = "" if t.one else f", {t.a.count:,} times"
    return f"the group's generation went back{often} ({t.span}); its members were {_names(t.a.members)}"


def _mismatch(t: AnomalyContext) -> str:
    holds = f"; according to the callbacks, {_names(t.a.members[1:])} owned it" if len(t.a.members) > 1 else ""
    assigned = f"the coordinator had assigned {t.place} to {t.who} at {t.begin} and accepted its heartbeats since"
    return f"{assigned}, but at {t.end}, in a stable group, {t.who} did not own it according to its callbacks{holds}"


def _imbalance(t: AnomalyContext) -> str:
    if t.a.cause == "assigned twice":
        return f"{t.who} was assigned {t.place} again{_often(t)} while it owned it, {t.span}"
    closing = ", while its client closed" if t.a.excuse else ""
    stray = f"a revoked or lost callback for {t.place}{_often(t)} although it did not own it"
    return f"{t.who} received {stray}, {t.span}{closing}"


def _early(t: AnomalyContext) -> str:
    if t.a.cause:
        late = f"{t.who} was still releasing its partitions of the previous generation"
        return f"{late} when {t.other} was assigned {t.place}{_often(t)}, {t.span}"
    zombie = f"; {t.who} had been removed from the group" if t.a.excuse else ""
    return f"{t.who} was still releasing {t.place} when {t.other} was assigned it{_often(t)}, {t.span}{zombie}"


def _needless(t: AnomalyContext) -> str:
    again = f"{t.place} was revoked from {t.who} and assigned to it again{_often(t)}"
    return f"{again}, {t.span}, although nothing in the group had changed"


def _unbalanced(t: AnomalyContext) -> str:
    most, _, least = t.a.cause.partition(" and ")
    return f"while the group was stable, {t.span}, {t.who} had {most} partitions and {t.other} had {least}{_changed(t)}"


def _not_sticky(t: AnomalyContext) -> str:
    moved = f"{t.a.cause} partitions were moved away from members that stayed"
    return f"{moved}: {_names(t.a.members)}, {t.span}{_changed(t)}"


def _paused(t: AnomalyContext) -> str:
    excused = "; no member could have owned it all the time" if t.a.excuse else ""
    often = f"for {t.length}" if t.one else f"{t.a.count:,} times for too long"
    between = f"{t.who} and {t.other}" if len(t.a.members) > 1 else f"two assignments to {t.who}"
    return f"no member owned {t.place} {often} ({t.span}), between {between}{excused}"


def _changed(t: AnomalyContext) -> str:
    return "; a member had changed its subscription" if t.a.excuse else ""


def _duplicate(t: AnomalyContext) -> str:
    if not t.a.members:
        return f"{t.records} had more than one effect"
    return f"{t.records} had two effects: {_both(t)}"


def _both(t: AnomalyContext) -> str:
    return f"the first by {t.other} at {t.begin}, the second by {t.who} at {t.end}"


def _missing(t: AnomalyContext) -> str:
    return f"{t.records} had no effect, although {_passed(t)}"


def _passed(t: AnomalyContext) -> str:
    """The commit past the records: the first member's, if it is known."""
    return f"{t.who} committed past {t.them} at {t.begin}" if t.a.members else f"the group committed past {t.them}"


def _parked_twice(t: AnomalyContext) -> str:
    return f"{t.records} had two dead letters: {_both(t)}{_all_the_time(t)}"


def _all_the_time(t: AnomalyContext) -> str:
    return f"; {t.who} had owned the partition all the time" if t.a.cause else ""


def _unparked(t: AnomalyContext) -> str:
    return f"{t.records} could not be processed and had no dead letter, although {_passed(t)}"


def _requeued_twice(t: AnomalyContext) -> str:
    return (
        f"{t.records} {t.were} re-queued twice: by {t.other} at {t.begin} and by {t.who} at {t.end}{_all_the_time(t)}"
    )


def _unrequeued(t: AnomalyContext) -> str:
    copies = "no copy of it" if t.one else "no copies of them"
    return f"{t.records} {t.were} recorded as re-queued, but the log has {copies}, although {_passed(t)}"


def _requeued_and_done(t: AnomalyContext) -> str:
    copied, done = f"{t.who} at {t.begin}", f"{t.other} at {t.end}"
    return f"{t.records} {t.were} re-queued by {copied}, and also processed by {done}{_all_the_time(t)}"


def _entity(t: AnomalyContext) -> str:
    by = f" by {t.other}" if len(t.a.members) > 1 else ""
    waits = f", parked as a dead letter{by} at {t.begin}, had not been retried"
    if t.a.cause:
        waits = f" had been re-queued behind {t.them} by {t.other} at {t.begin}"
    return f"{t.who} processed {t.records} at {t.end}, although an earlier record of the same key{waits}"


def _orphaned(t: AnomalyContext) -> str:
    leader = "; it had no leader for a part of that time" if t.a.excuse else ""
    often = f"for {t.length}" if t.one else f"{t.a.count:,} times"
    callbacks = "" if t.tables.black_box else " and all callbacks"
    return f"no member owned {t.place} {often} ({t.span}), according to the coordinator's log{callbacks}{leader}"


def _restless(t: AnomalyContext) -> str:
    rebalances = f"{t.a.count:,} {'rebalance' if t.one else 'rebalances'}"
    return f"the group was never stable for {t.length} ({t.span}): {rebalances}, the last of {_names(t.a.members)}"


def _dead(t: AnomalyContext) -> str:
    life = t.tables.lives.get(t.who)
    by_signal = life is not None and not life.fatal and life.signal
    way = f"was ended by {t.a.cause}, which the harness never sent," if by_signal else "ended by itself"
    fatal = f"; its client had reported a fatal error ({t.a.cause})" if t.a.cause and not by_signal else ""
    return f"{t.who} {way} at {t.end}; its last sign of life was at {t.begin}{fatal}"


def _hung(t: AnomalyContext) -> str:
    life = t.tables.lives.get(t.who)
    killed = life is not None and life.signal == "SIGKILL"
    place = f" in {life.place}" if life is not None and life.place else ""
    after = f", {t.a.cause}" if t.a.cause else ""
    disturbed = "; another fault was in effect then, or shortly before" if t.a.excuse else ""
    way = f"was killed {t.length} later{place}" if killed else f"ended only {t.length} later"
    return f"{t.who} was asked to end at {t.begin}, and {way}{after}{disturbed}"


def _still(t: AnomalyContext) -> str:
    often = f"for {t.length}" if t.one else f"{t.a.count:,} times"
    at_work = f"; its handler was processing offset {t.offsets} of {t.place}" if t.a.cause else ""
    idle = "did not poll" if t.a.cause else "neither polled nor processed a record"
    return f"{t.who}, which owned {t.owned} and sent heartbeats, {idle} {often} ({t.span}){at_work}"


SENTENCES: Mapping[str, Callable[[AnomalyContext], str]] = {
    "coordinator-overlap": _overlap,
    "generation-regression": _regression,
    "assignment-mismatch": _mismatch,
    "callback-imbalance": _imbalance,
    "early-assignment": _early,
    "needless-revocation": _needless,
    "duplicate-effect": _duplicate,
    "missing-effect": _missing,
    "dead-letter-twice": _parked_twice,
    "dead-letter-missing": _unparked,
    "per-entity-order": _entity,
    "requeue-missing": _unrequeued,
    "requeue-twice": _requeued_twice,
    "requeued-and-done": _requeued_and_done,
    "unbalanced": _unbalanced,
    "not-sticky": _not_sticky,
    "long-pause": _paused,
    "orphaned-partition": _orphaned,
    "never-stable": _restless,
    "dead-member": _dead,
    "hung-shutdown": _hung,
    "stuck-member": _still,
}
