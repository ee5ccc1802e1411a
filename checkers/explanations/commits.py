"""The sentences of the kinds that the promise ``Commits`` covers; see ``explanations``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fencepost.checkers.explanations.anomaly_context import AnomalyContext, broker


def _writer(t: AnomalyContext) -> str:
    """The member that sent a commit."""
    return t.who if t.a.members else "a member that the request log does not identify for certain"


def _regression(t: AnomalyContext) -> str:
    why = {
        "own retry": "; the same member corrected that before any member fetched it",
        "seek": "; the program itself had moved its position back",
    }.get(t.a.cause, "")
    to = f"to {t.a.first_offset}" if t.one else f"{t.a.count:,} times, to offsets {t.offsets}"
    former = f", below the offset that {t.other} had committed" if len(t.a.members) > 1 else ""
    return f"the committed offset of {t.place} went back {to} ({t.span}), by {_writer(t)}{former}{why}"


def _beyond_end(t: AnomalyContext) -> str:
    above = "above every record that the log can have held then"
    many = "offset" if t.a.first_offset == t.a.last_offset else "offsets"
    return f"{_writer(t)} committed {many} {t.offsets} of {t.place} ({t.span}), {above}"


def _off_by_one(t: AnomalyContext) -> str:
    last = "the offset of the last finished record instead of the next one to read, as in every partition"
    return f"the final commit of {t.place} ({t.offsets}, {t.span}), by {_writer(t)}, is {last}"


def _foreign(t: AnomalyContext) -> str:
    since = ", which it had owned before," if t.a.kind == "zombie-commit" else ""
    often = f"offset {t.offsets}" if t.one else f"{t.a.count:,} times, offsets {t.offsets}"
    return f"{t.who} committed {t.place}{since} after the coordinator had assigned it to {t.other} ({often}, {t.span})"


def _work_after_fencing(t: AnomalyContext) -> str:
    hindered = f"; {t.a.excuse}" if t.a.excuse else ""
    refused = f"although its commit had been refused ({t.a.cause}) and it had not rejoined"
    return f"{t.who} continued to process {t.records} ({t.span}) {refused}{hindered}"


def _untrue(t: AnomalyContext) -> str:
    why = f"had refused it ({t.a.cause})" if t.a.cause else "has no record of it"
    what = f"its commit of {t.place} ({t.offsets})" if t.one else f"{t.a.count:,} commits of {t.place} ({t.offsets})"
    return f"the client of {t.who} reported that {what} had succeeded ({t.span}), but the coordinator {why}"


def _wrong_start(t: AnomalyContext) -> str:
    sought = "; the program itself had moved its position" if t.a.cause == "seek" else ""
    where = f"at offset {t.offsets}" if t.one else f"{t.a.count:,} times at offsets {t.offsets}"
    return f"{t.who} began an assignment of {t.place} {where} ({t.span}), which no committed offset explains{sought}"


def _stale(t: AnomalyContext) -> str:
    """The sentence names the last of several stale answers; for a consequence, the answer that caused it."""
    stale = t.stale
    if stale is None:
        return f"a coordinator answered with older offsets of {t.place} than had been acknowledged ({t.span})"
    answer, commit, at_ns = stale
    asker = t.who if t.a.members else answer.incarnation or "an unknown client"
    what = "no committed offset" if answer.offset < 0 else f"{answer.offset} as the committed offset"
    sent = f"the coordinator ({broker(answer.broker)}) sent {asker} {what} of {t.place} at {t.at(answer.end_ns)}"
    before = f"although a commit of {commit.offset} had been acknowledged at {t.at(at_ns)}"
    followed = {
        "wrong-start": f"{t.who} began there",
        "redelivery-below-commit": f"{t.who} processed {t.records} again",
        "commit-regression": f"so the next commit of {t.who} went back to {t.a.first_offset}",
        "duplicate-effect": f"{t.records} had a second effect, by {t.who}",
        "dead-letter-twice": f"{t.records} had a second dead letter, by {t.who}",
        "requeue-twice": f"{t.records} had a second copy, by {t.who}",
    }.get(t.a.cause, "" if t.one else f"the last of {t.a.count:,} such answers ({t.span})")
    return f"{sent}, {before}{f'; {followed}' if followed else ''}"


SENTENCES: Mapping[str, Callable[[AnomalyContext], str]] = {
    "stale-offset-answer": _stale,
    "commit-regression": _regression,
    "commit-beyond-end": _beyond_end,
    "off-by-one": _off_by_one,
    "foreign-commit": _foreign,
    "zombie-commit": _foreign,
    "work-after-fencing": _work_after_fencing,
    "silent-commit-failure": _untrue,
    "acknowledged-commit-missing": _untrue,
    "wrong-start": _wrong_start,
}
