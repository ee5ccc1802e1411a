"""Performs commits, and records each as an event. Policies decide when a member commits (``policies``)."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from fencepost_member import kafka_errors
from fencepost_member.ownership import Tp, rows
from fencepost_member.recording.events import EventLog

Offsets = Dict[Tp, int]
Errors = Dict[Tp, str]  # error name for each partition, empty for success
Answer = Callable[[Offsets, Errors], None]  # called with the answer to a commit
Work = List[Tuple[int, Tp, int]]  # the recorder's index, the partition, the next offset


class Committer:
    """Performs commits and records each as an event.

    Attributes:
        events: the member's event log.
    """

    def __init__(
        self, adapter: Any, events: EventLog, what: Callable[[Offsets, str], Offsets] = lambda offsets, _: offsets
    ) -> None:
        """``adapter`` is an ``Adapter`` or an ``Output``; ``what`` maps the requested offsets and the mode to the
        offsets that are committed (for planted bugs)."""
        self._adapter, self.events, self._what = adapter, events, what

    def commit(self, offsets: Offsets, mode: str) -> Errors:
        """Commit and wait for the answer: an error name for each partition, empty for success."""
        offsets = self._what(offsets, mode)
        if not offsets:
            return {}
        answered = begun(self.events, self._adapter.identity, offsets, mode)
        errors: Errors = self._adapter.commit(offsets)
        answered(offsets, errors)
        return errors

    def begin(self, offsets: Offsets, mode: str, answered: Answer) -> None:
        """Commit without waiting: ``answered`` is called with the answer; the adapter satisfies ``AsyncCommit``."""
        offsets = self._what(offsets, mode)
        if not offsets:
            answered({}, {})  # the caller begins no other commit before the answer
            return
        record = begun(self.events, self._adapter.identity, offsets, mode)

        def on_answer(errors: Errors) -> None:
            record(offsets, errors)
            answered(offsets, errors)

        self._adapter.commit_async(offsets, on_answer)


def begun(
    events: EventLog, identity: Callable[[], Tuple[str, int]], offsets: Offsets, mode: str, named: bool = True
) -> Answer:
    """Record that a commit begins, and return the function that records its answer: the committed offsets, and an error
    name for each partition. A commit without offsets is not recorded.

    Args:
        named: whether the client sends exactly these offsets. Otherwise it sends the offsets that are stored when it
            gets to it, and these are the ones that were stored at the call.
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
        for other in answers:  # partitions with a different answer become another commit
            events.note("commit", **{**fields, "end_ns": events.now(), **other})

    return answered


def by_answer(offsets: Offsets, errors: Errors) -> List[Dict[str, Any]]:
    """The event fields of one commit, one entry for each different answer."""
    different = sorted(set(errors.values()))
    return [
        {
            "partitions": rows({tp: offset for tp, offset in offsets.items() if errors[tp] == error}),
            "outcome": kafka_errors.outcome(error),
            "error": error or None,
        }
        for error in different
    ]
