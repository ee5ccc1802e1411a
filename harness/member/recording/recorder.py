"""The recorder: writes the times of every record to preallocated memory maps, which survive the death of the process.

A *lane* belongs to one thread, or to several that alternate, and fills one segment (see ``segments``) after the other::

    lane = Recorder(directory, "member-2.1").lane()
    index = lane.delivered(tp, offset, key, writer, seq, interval, poll, position)
    lane.begin(index)
    lane.done(index)          # or parked, or failed: exactly one of them ends a record

When a call has returned, its data survives SIGKILL, because it is in the page cache (not a crash of the host). Any
thread may begin and end records, in any order, also when their segment is no longer the current one. Only the lane's
own thread may deliver.

``ord`` counts the deliveries of a partition in this actor over all lanes. It never repeats; it ascends with time as
long as a partition is delivered by one lane at a time.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from pathlib import Path
from time import monotonic_ns
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

from fencepost_member.recording.segments import (
    ABORTED,
    COMMITTED,
    DELIVERED,
    FAILED,
    FINISHED,
    FINISHED_BEFORE,
    HEADER_BYTES,
    PARKED,
    POLLED,
    PRODUCED,
    UNKNOWN,
    Layout,
    create,
)

DEFAULT_CAPACITY = 1 << 18  # records in a segment: 22 MiB of a member, 14 MiB of a producer

# An index has the segment's place in its lane and, in the lower bits, the record's first word in that segment.
_SHIFT = 24
_MASK = (1 << _SHIFT) - 1
_MOST = ((_MASK + 1) * 8 - HEADER_BYTES) // DELIVERED.bytes
Clock = Callable[[], int]
_ACTOR = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class MemberLane(NamedTuple):
    """The functions with which one thread of a member records.

    ``polled(until_ns)``: just before a poll, which may wait until then; returns the time now, in nanoseconds.
    ``delivered(tp, offset, key, writer, seq, interval, poll, position)``: returns the index for the other functions.
    ``parked`` and ``failed`` are final: a handler that retries ends the record after its last attempt.
    ``close`` closes the files. Not calling ``close`` loses no data.
    """

    polled: Callable[..., int]
    delivered: Callable[[int, int, int, int, int, int, int, int], int]
    begin: Callable[[int], None]
    done: Callable[[int], None]
    parked: Callable[[int], None]
    failed: Callable[[int], None]
    close: Callable[[], None]


class ProducerLane(NamedTuple):
    """The functions with which one thread of a producer records: first ``sent(tp, key, writer, seq)``, then one end.

    ``acked(index, offset)``: written; ``failed(index)``: certainly not written; ``aborted(index)``: its transaction was
    aborted; ``unknown(index)``, or no end at all: the outcome is unknown.
    """

    sent: Callable[[int, int, int, int], int]
    acked: Callable[[int, int], None]
    failed: Callable[[int], None]
    unknown: Callable[[int], None]
    aborted: Callable[[int], None]
    close: Callable[[], None]


class Recorder:
    """The recorder of one actor: it creates the lanes, which write ``<directory>/<actor>.<n>.seg``.

    A lane raises FileExistsError when this actor has been recorded before, and OSError when the disk has no room for a
    segment; only at the start of a segment.
    """

    def __init__(self, directory: Any, actor: str, capacity: int = DEFAULT_CAPACITY, now: Clock = monotonic_ns) -> None:
        """``capacity`` is the number of records in a segment; ``now`` is the clock, in nanoseconds.

        Raises:
            ValueError: the actor's name or the capacity is out of range.
        """
        if not _ACTOR.fullmatch(actor):
            raise ValueError("expected 1 to 100 of A-Z a-z 0-9 _ . - as an actor's name, found %s" % ascii(actor))
        if not 1 <= capacity <= _MOST:
            raise ValueError("expected 1 to %d records as a segment's capacity, found %r" % (_MOST, capacity))
        self.directory, self.actor = Path(directory), actor
        self.capacity, self.now = capacity, now
        self.files, self._threads = itertools.count(), itertools.count()
        self._ords: Dict[int, Iterator[int]] = defaultdict(itertools.count)  # by tp; next() is atomic, so no lock
        self._tracks: List[_Track] = []
        self.directory.mkdir(parents=True, exist_ok=True)

    def lane(self) -> MemberLane:
        """A lane for the calling thread of a member."""
        return _member_lane(self._track(DELIVERED), self._ords, self.now)

    def producer_lane(self) -> ProducerLane:
        """A lane for the calling thread of a producer."""
        return _producer_lane(self._track(PRODUCED))

    def close(self) -> None:
        """Close all lanes."""
        for track in self._tracks:
            track.close()

    def _track(self, layout: Layout) -> _Track:
        track = _Track(self, layout, next(self._threads))
        self._tracks.append(track)
        return track


def _member_lane(track: _Track, ords: Dict[int, Iterator[int]], now: Clock) -> MemberLane:
    """The lane as closures over locals: functions that run for every record then look up no attributes."""
    views, pack_into, shift, mask = track.views, track.layout.pack_into, _SHIFT, _MASK
    bytes_, words, start, end = track.record
    (view, index), at, finished = track.advance(0), start, 0

    def polled(until_ns: int = 0) -> int:
        at_ns = now()
        view[POLLED] = until_ns or at_ns
        return at_ns

    def delivered(
        tp: int, offset: int, key: int, writer: int, seq: int, interval: int, poll: int, position: int
    ) -> int:
        nonlocal view, index, at
        if at == end:
            view, index = track.advance(finished)
            at = start
        order = next(ords[tp])
        pack_into(view, at, offset, key, seq, poll, order, now(), tp, writer, interval, position, COMMITTED)
        at += bytes_
        index += words
        return index

    def begin(index: int) -> None:
        views[index >> shift][index & mask] = now()

    def done(index: int) -> None:
        nonlocal finished
        views[index >> shift][(index & mask) + 1] = now()
        finished += 1
        view[FINISHED] = finished

    def parked(index: int) -> None:
        track.mark(index, PARKED)
        done(index)

    def failed(index: int) -> None:
        track.mark(index, FAILED)
        done(index)

    return MemberLane(polled, delivered, begin, done, parked, failed, track.close)


def _producer_lane(track: _Track) -> ProducerLane:
    """The same for a producer."""
    now, views, pack_into, shift, mask = monotonic_ns, track.views, track.layout.pack_into, _SHIFT, _MASK
    bytes_, words, start, end = track.record
    (view, index), at, finished = track.advance(0), start, 0

    def sent(tp: int, key: int, writer: int, seq: int) -> int:
        nonlocal view, index, at
        if at == end:
            view, index = track.advance(finished)
            at = start
        pack_into(view, at, key, seq, now(), tp, writer, COMMITTED)
        at += bytes_
        index += words
        return index

    def acked(index: int, offset: int) -> None:
        nonlocal finished
        words = views[index >> shift]
        words[index & mask] = offset
        words[(index & mask) + 1] = now()
        finished += 1
        view[FINISHED] = finished

    def ending(outcome: int) -> Callable[[int], None]:
        def end(index: int) -> None:
            track.mark(index, outcome)
            views[index >> shift][(index & mask) + 1] = now()

        return end

    return ProducerLane(sent, acked, ending(FAILED), ending(UNKNOWN), ending(ABORTED), track.close)


class _Whole:
    """Replaces an old segment whose records have all ended: ending one of them again has no effect."""

    def __setitem__(self, place: int, value: int) -> None: ...


class _Track:
    """The segments of one lane: the current one, and earlier ones that still have records without an end."""

    def __init__(self, recorder: Recorder, layout: Layout, thread: int) -> None:
        self._recorder, self.layout, self._thread = recorder, layout, thread
        self.views: List[Any] = []  # by place in the lane: the file in words
        self._maps: List[Any] = []  # by place in the lane: the file in bytes
        bytes_, start = layout.bytes, HEADER_BYTES + layout.packed_at
        # Bytes and words of a record; byte of the packed part of the first record, and of one after the last.
        self.record: Tuple[int, int, int, int] = (bytes_, bytes_ // 8, start, start + recorder.capacity * bytes_)

    def advance(self, finished: int) -> Tuple[memoryview, int]:
        """Begin the next segment; returns its words, and the index before that of its first record."""
        recorder, order = self._recorder, len(self.views)
        path = recorder.directory / ("%s.%d.seg" % (recorder.actor, next(recorder.files)))
        mapped = create(path, self.layout, recorder.actor, recorder.capacity, self._thread, order)
        view = memoryview(mapped).cast("q")
        view[FINISHED_BEFORE] = view[FINISHED] = finished
        self._maps.append(mapped)
        self.views.append(view)
        self._release_whole_ones(order - 1)  # not the previous segment: another thread may still write to it
        return view, (order << _SHIFT) + (HEADER_BYTES - self.layout.bytes) // 8

    def mark(self, index: int, outcome: int) -> None:
        """Store the outcome byte of an unusual end; the caller stores its time afterwards."""
        self._maps[index >> _SHIFT][((index & _MASK) << 3) + self.layout.outcome_at] = outcome

    def close(self) -> None:
        """Close all files. May be called twice; recording afterwards raises TypeError or ValueError."""
        for place, view in enumerate(self.views):
            if isinstance(view, memoryview):
                view.release()
                self._maps[place].close()

    def _release_whole_ones(self, before: int) -> None:
        ended = slice(HEADER_BYTES // 8 + 1, None, self.layout.bytes // 8)
        for place, view in enumerate(self.views[: max(0, before)]):
            if isinstance(view, memoryview) and 0 not in view[ended].tolist():
                self._maps[place], self.views[place] = _Whole(), _Whole()
                view.release()  # the map closes when the last reference to it is gone
