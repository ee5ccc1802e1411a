"""Commits: performing them, and recording each as an event. When a member commits what is a policy (``policies``)."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from fencepost_member import outcomes
from fencepost_member.events import EventLog
from fencepost_member.ownership import Tp, rows

Offsets = Dict[Tp, int]
Errors = Dict[Tp, str]  # empty: none
Answer = Callable[[Offsets, Errors], None]  # told what was committed
Work = List[Tuple[int, Tp, int]]  # the recorder's index, the partition, the next offset


class Commits:
    """Performs commits and records each as an event.

    Attributes:
        events: where.
    """

    def __init__(
        self, adapter: Any, events: EventLog, what: Callable[[Offsets, str], Offsets] = lambda offsets, _: offsets
    ) -> None:
        """``adapter`` is an ``Adapter`` or an ``Output``; ``what`` is committed for what is asked for (members wrong on
        purpose)."""
        self._adapter, self.events, self._what = adapter, events, what

    def commit(self, offsets: Offsets, mode: str) -> Errors:
        """Commit and wait for the answer; an error name for each partition, empty where it was accepted."""
        offsets = self._what(offsets, mode)
        if not offsets:
            return {}
        answered = begun(self.events, self._adapter.identity, offsets, mode)
        errors: Errors = self._adapter.commit(offsets)
        answered(offsets, errors)
        return errors

    def begin(self, offsets: Offsets, mode: str, answered: Answer) -> None:
        """Commit and go on: ``answered`` is told the answer, as soon as the adapter (which ``Defers``) tells it."""
        offsets = self._what(offsets, mode)
        if not offsets:
            answered({}, {})  # who asked begins no other one before that
            return
        tell = begun(self.events, self._adapter.identity, offsets, mode)

        def told(errors: Errors) -> None:
            tell(offsets, errors)
            answered(offsets, errors)

        self._adapter.commit_async(offsets, told)


def begun(
    events: EventLog, identity: Callable[[], Tuple[str, int]], offsets: Offsets, mode: str, named: bool = True
) -> Answer:
    """Tell that a commit begins; what is returned tells its answer: what was committed, an error name for each. A
    commit of nothing leaves nothing.

    Args:
        named: whether the offsets are what the client is going to send. Else it sends what is stored once it gets to
            that, and these are what was stored when it was asked to.
    """
    member_id, generation = identity()
    fields: Dict[str, Any] = {
        "begin_ns": events.now(),
        "member_id": member_id,
        "generation": generation,
        "detail": {"mode": mode, **({} if named else {"asked": rows(offsets)})},
    }
    event = events.begin("commit", partitions=rows(offsets), **fields) if offsets else None

    def answered(offsets: Offsets, errors: Errors) -> None:
        answers = by_answer(offsets, errors)
        if event is not None:
            events.end(event, **answers.pop(0))
        for other in answers:  # partitions that were answered differently are a commit of their own
            events.note("commit", **{**fields, "end_ns": events.now(), **other})

    return answered


def by_answer(offsets: Offsets, errors: Errors) -> List[Dict[str, Any]]:
    """The event fields of one commit, apart for each different answer."""
    different = sorted(set(errors.values()))
    return [
        {
            "partitions": rows({tp: offset for tp, offset in offsets.items() if errors[tp] == error}),
            "outcome": outcomes.outcome(error),
            "error": error or None,
        }
        for error in different
    ]
