"""Anomalies as sentences and witnesses that a reader can check by hand. Times are seconds since the run's start.

Sentences with a fixed form are templates in the registry of findings; the others are written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fencepost.checkers.detections import EXPIRED
from fencepost.checkers.explanations import commits, group
from fencepost.checkers.explanations.anomaly_context import AnomalyContext
from fencepost.checkers.promises.delivery import SOUGHT
from fencepost.checkers.promises.recovers import NO_BASELINE
from fencepost.checkers.tables import Tables
from fencepost.model import Anomaly
from fencepost.model.findings import FINDINGS

EXAMPLES_MAX = 10  # of a finding in the verdict


def example(tables: Tables, anomaly: Anomaly) -> dict[str, Any]:
    """One example of a finding: its place, times, members, sentence and witnesses; Jepsen's name if it differs."""
    reporting = AnomalyContext(tables, anomaly)
    offsets = {"offset": anomaly.first_offset, "last_offset": anomaly.last_offset} if anomaly.first_offset >= 0 else {}
    place = {"topic": anomaly.topic, "partition": anomaly.partition} if anomaly.topic else {}
    times = {"from_ns": anomaly.from_ns, "to_ns": anomaly.to_ns} if anomaly.from_ns else {}
    why = {name: value for name, value in (("cause", anomaly.cause), ("excuse", anomaly.excuse)) if value}
    name = FINDINGS[anomaly.kind].jepsens(anomaly.cause) if anomaly.kind in FINDINGS else ""
    called = {"jepsen": name} if name not in ("", anomaly.kind) else {}
    generation = {"generation": g} if (g := reporting.generation) >= 0 else {}
    return {
        **place,
        **offsets,
        "members": list(anomaly.members),
        **generation,
        **times,
        **why,
        **called,
        "count": anomaly.count,
        "sentence": _sentence(reporting),
        "witnesses": reporting.witnesses(),
    }


def _sentence(t: AnomalyContext) -> str:
    """The sentence of an anomaly; kinds without a sentence of their own get a general one."""
    write = SENTENCES.get(t.a.kind)
    text = write(t) if write else f"{t.a.kind}: {t.records} ({', '.join(t.a.members)}), {t.span}"
    if t.a.excuse.startswith("declared act"):
        text += f" ({t.a.excuse})"
    named = any(text.startswith(name) for name in t.a.members)
    return f"{text if named else text[0].upper() + text[1:]}."


def _filled(template: str, t: AnomalyContext) -> str:
    return template.format(t=t)


def _landed(t: AnomalyContext, how: str) -> str:
    sent = f" (sent {t.span})" if t.a.from_ns else ""
    why = "; its client is not configured as idempotent" if t.a.excuse else ""
    return f"{t.records}, by {t.who}{sent}, {how}{why}"


def _unseen(t: AnomalyContext) -> str:
    passed, c = f"the group committed past {t.records}", t.passer
    if c:
        when = f"(generation {c.generation}, {t.at(c.begin_ns)})"
        passed = (
            f"{c.incarnation} committed offset {c.offset} {when}, past {t.records}"
            if c.offset > t.a.last_offset
            else f"several commits, the first of offset {c.offset} by {c.incarnation} {when}, went past {t.records}"
        )
    holder = "it" if c and c.offset > t.a.last_offset and c.incarnation == t.other else t.other
    never = ", which no member had ever received"
    how = {
        "skipped": never,
        "unrecorded": ", in an assignment without any recorded delivery",
        "seek": f"{never}{_by_program(t)}",
        "expired": f"{never}: the group's committed offset had expired while "
        "no member owned the partition, and without a committed offset members begin at the end",
        "latest": f"{never}: the group had not committed an offset of the partition yet, "
        "so a member began at the end of the log (auto.offset.reset)",
        "in-doubt": f", which {holder} had begun but not finished",
        "committed-unprocessed": f", which {holder} had received but not finished",
    }[t.a.cause]
    death = t.death(t.other) if t.a.cause in ("in-doubt", "committed-unprocessed") else ""
    died = f"{death}; " if death else ""
    processed = f"{t.they} had no effect" if t.a.cause == "unrecorded" and t.tables.by_effect else ""
    return f"{passed}{how}; {died}{processed or f'no member processed {t.them}'}"


def _by_program(t: AnomalyContext) -> str:
    whose = f"the program of {t.who}" if t.a.members else "a program"
    return f", as {whose} had itself moved its position past {t.them}"


def _twice(t: AnomalyContext) -> str:
    if t.who == t.other:
        return f"{t.records} {t.were} finished by {t.who} in one assignment and again in a later one ({t.span})"
    return f"{t.records} {t.were} finished by {t.who} and again by {t.other}, the later owner ({t.span})"


def _redelivery(t: AnomalyContext) -> str:
    if t.a.excuse.startswith("declared act"):
        return _twice(t)
    if t.a.cause == "seek":
        return f"{_twice(t)}{_sought(t, 'moved its position back')}"
    why = {
        "": f"nothing shows that {t.who} had released the partition",
        EXPIRED: f"the group's committed offset of {t.place} had expired while no member owned it",
        "former owner died": t.death(t.who) or f"{t.who} died",
        "former owner lost it": f"{t.who} had lost the partition before it could commit",
        "former owner was removed": f"{t.who} had been removed from the group before it could commit",
    }.get(t.a.excuse, f"the {t.a.excuse} when {t.who} released the partition")
    return f"{_twice(t)}: {why}"


def _loop(t: AnomalyContext) -> str:
    why = (
        ", more often than any fault explains"
        if t.a.cause == "count"
        else " while the committed offset did not advance"
    )
    itself = "; the program itself had moved its position back" if t.a.excuse == SOUGHT else ""
    return f"{t.records} {t.were} delivered again and again{why} ({t.span}), the last time to {t.who}{itself}"


def _rewind(t: AnomalyContext) -> str:
    return f"{t.who} received {t.records} again {_inside(t)}, {t.span}{_sought(t, 'moved its position back')}"


def _poll_skip(t: AnomalyContext) -> str:
    went_past = f"did not receive {t.records} and went past {t.them} {_inside(t)}"
    return f"{t.who} {went_past}, {t.span}{_sought(t, 'moved its position')}"


def _inside(t: AnomalyContext) -> str:
    return t.a.cause if t.a.cause.startswith("inside") else "inside one assignment"


def _sought(t: AnomalyContext, what: str) -> str:
    return f"; the program itself had {what}" if t.a.cause == "seek" else ""


def _key_order(t: AnomalyContext) -> str:
    if t.one:
        earlier = "an earlier record of the same key was first finished"
        return f"{t.who} began {t.records} at {t.begin}, before {earlier} (by {t.other}, {t.end})"
    earlier = "each before an earlier record of its key was first finished"
    return f"{t.who} began {t.records}, {earlier} (by {t.other}), {t.span}"


def _overlap(t: AnomalyContext) -> str:
    zombie = f"; {t.who} had been removed from the group and could not know that yet" if t.a.excuse else ""
    often = f"for {t.length}" if t.one else f"{t.a.count:,} times"
    return f"{t.who} and {t.other} both owned {t.place} {often}, {t.span}{zombie}"


def _at_work(t: AnomalyContext) -> str:
    frozen = f"; {t.who} had begun {t.them} before it was frozen" if t.a.excuse else ""
    return f"{t.who} was processing {t.records} while {t.other} was processing records of {t.place}, {t.span}{frozen}"


def _stale_effect(t: AnomalyContext) -> str:
    why = {
        "": f"{t.who} had begun {t.them} after its own callback for {t.place} had returned",
        "in flight when frozen": f"{t.who} had begun {t.them} before it was frozen",
        "not told yet": f"when {t.who} began {t.them}, its client had not reported yet that it had lost {t.place}",
        "begun as its owner": f"{t.who} had begun {t.them} as the owner of {t.place}",
    }[t.a.excuse]
    return f"{t.who} finished {t.records} after {t.other}, a later owner, had finished {t.them} ({t.span}); {why}"


def _stuck(t: AnomalyContext) -> str:
    itself = {
        "paused": " and had itself paused it",
        "forked": ": its program polled the consumer in a forked process, which receives no records",
    }.get(t.a.cause, "")
    owner = f"while {t.who} owned it{itself}" if t.a.members else "while no member owned it"
    often = f"for {t.length}" if t.one else f"{t.a.count:,} times"
    done = "committed" if t.tables.black_box else "delivered"
    waited = f"records of {t.place} waited, from offset {t.a.first_offset} on, and none was {done}"
    return f"{often} ({t.span}) {waited} {owner}{_leader(t)}"


def _leader(t: AnomalyContext) -> str:
    return "; it had no leader for a part of that time" if t.a.excuse == "no leader" else ""


def _slow(t: AnomalyContext) -> str:
    return f"after {t.a.cause} was over, {_stuck(t)}"


def _catch_up(t: AnomalyContext) -> str:
    owner = f"while {t.who} owned it" if t.a.members else "while no member owned it"
    doubt = f"; {NO_BASELINE}" if t.a.excuse == NO_BASELINE else ""
    waited = f"records of {t.place} waited for longer than normal, from offset {t.a.first_offset} on"
    return f"until {t.length} after {t.a.cause} was over ({t.span}) {waited}, {owner}{_leader(t)}{doubt}"


def _collateral(t: AnomalyContext) -> str:
    why = f"; {t.a.excuse}" if t.a.excuse not in ("", "no leader") else ""
    return f"while {t.a.cause} hit other members, {_stuck(t)}{why}"


def _unconsumed(t: AnomalyContext) -> str:
    owner = f"the last owner of {t.place} was {t.who}" if t.a.members else f"{t.place} was never assigned to a member"
    done = "committed past" if t.tables.black_box else "processed"
    return f"no member had {done} {t.records} when the drain ended, at {t.end}; {owner}"


def _incomplete(t: AnomalyContext) -> str:
    many = f"{t.a.count:,} {'delivery' if t.one else 'deliveries'} of {t.place}"
    what = {
        "hole": f"lacks {many}",
        "twice": f"has {many} with the number of an earlier one",
        "early": f"has {many} from before the assignment that {'it names' if t.one else 'they name'}",
    }[t.a.cause]
    return f"the history of {t.who} {what} ({t.span})"


def _unrecorded(t: AnomalyContext) -> str:
    none = f"the history of {t.who} has no delivery of {t.records}"
    if t.a.cause == "effect":
        return f"{none}, which had an effect"
    return f"{none}, and no other delivery of the assignment in which it committed past {t.them} ({t.span})"


SENTENCES: Mapping[str, Callable[[AnomalyContext], str]] = {
    **{kind.name: partial(_filled, kind.sentence) for kind in FINDINGS.values() if kind.sentence},
    "duplicate-write": lambda t: _landed(
        t, f"{t.were} already in the log at {'a lower offset' if t.one else 'lower offsets'}"
    ),
    "nonmonotonic-send": lambda t: _landed(t, f"{t.were} appended after records that were sent later"),
    "unseen": _unseen,
    "redelivery": _redelivery,
    "avoidable-redelivery": lambda t: (
        f"{_twice(t)}, although {t.who} released the partition cleanly{_sought(t, 'moved its position back')}"
    ),
    "redelivery-below-commit": lambda t: (
        f"{t.who} processed {t.records} again ({t.span}), although the group had already committed past "
        f"{t.them} when {t.who} fetched its committed offset{_sought(t, 'moved its position back')}"
    ),
    "redelivery-loop": _loop,
    "rewind": _rewind,
    "poll-skip": _poll_skip,
    "key-order": _key_order,
    "assignment-overlap": _overlap,
    "processing-overlap": _at_work,
    "stale-effect": _stale_effect,
    "unconsumed": _unconsumed,
    "stuck-partition": _stuck,
    "slow-recovery": _slow,
    "slow-catch-up": _catch_up,
    "collateral-stall": _collateral,
    "history-incomplete": _incomplete,
    "unrecorded-delivery": _unrecorded,
    **commits.SENTENCES,
    **group.SENTENCES,
}
