"""Rows from events that only the judge needs; ``history.events`` has the shared ones. Pure; only ``tables.load`` calls
this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.checkers.tables.rows import Commit, Interval, UnmatchedRevocation, Window
from fencepost.history import EventKind
from fencepost.history.events import Event, placed


def broken_off(windows: Mapping[str, Window]) -> str:
    """The phase in which the run was interrupted: the first one that never ended; empty: none."""
    endless = [(window.begin_ns, name) for name, window in windows.items() if not window.end_ns]
    return min(endless, default=(0, ""))[1]


def unguarded(events: Iterable[Event]) -> frozenset[int]:
    """The started writers whose client is not configured as idempotent (by default it is not)."""
    started = (e["detail"] for e in events if e["kind"] == EventKind.STARTED and "writer" in e["detail"])
    settings = {int(detail["writer"]): detail.get("config") or {} for detail in started}
    return frozenset(w for w, s in settings.items() if str(s.get("enable.idempotence", False)).lower() != "true")


def protocols(events: Iterable[Event]) -> frozenset[str]:
    """The group protocols of the members that started."""
    started = (e["detail"] for e in events if e["kind"] == EventKind.STARTED and "member" in e["detail"])
    return frozenset(filter(None, (detail.get("protocol") for detail in started)))


def strays(
    events: Iterable[Event], known: Iterable[Interval], numbers: Mapping[tuple[str, int], int]
) -> tuple[UnmatchedRevocation, ...]:
    """The revoked and lost callbacks for partitions that the incarnation did not own: no interval ended by them."""
    ended = {(i.incarnation, i.tp, i.given_up_begin_ns) for i in known}
    found = [(e, tp) for kind in (EventKind.REVOKED, EventKind.LOST) for e, tp in placed(events, numbers, kind)]
    strange = [(e, tp) for e, tp in found if (e["actor"], tp, e["begin_ns"]) not in ended]
    return tuple(
        UnmatchedRevocation(tp, e["actor"], Window(e["begin_ns"], e["end_ns"] or e["begin_ns"])) for e, tp in strange
    )


def commits(events: Iterable[Event], numbers: Mapping[tuple[str, int], int]) -> tuple[Commit, ...]:
    """The commits that members report. A commit without an answer (its member died) has end 0 and outcome ``info``."""
    return tuple(
        Commit(
            tp=tp,
            offset=-1 if e["offset"] is None else e["offset"],
            incarnation=e["actor"],
            member_id=e["member_id"] or "",
            generation=-1 if e["generation"] is None else e["generation"],
            begin_ns=e["begin_ns"],
            end_ns=e["end_ns"],
            outcome=(e["outcome"] or "info") if e["end_ns"] else "info",
            error=e["error"] or "",
            mode=str(e["detail"].get("mode") or ""),
            asked=_stored(e),
        )
        for e, tp in placed(events, numbers, EventKind.COMMIT)
    )


def _stored(event: Event) -> int | None:
    """The stored offset of the partition when the program asked the client to commit it; see ``Commit.asked``."""
    if event["detail"].get("asked") is None:
        return None
    place = (event["topic"], event["partition"])
    return next((offset for *of, offset in event["detail"]["asked"] if tuple(of) == place), -1)
