"""The last commit of a VerifiableConsumer that died before it told of it, by what the brokers logged.

Kafka's program tells the records of a poll, commits past them, and tells of that when it is answered. When it dies in
between, by its lines it still had them in hand. But it was done with them when it asked for the commit (see
``in_hand``), and the brokers know that it did. When it was done with each nobody knows: as early as can be.

What it had in hand came with its last poll, before it asked. What came with an earlier one and was never done is what
it gave up, or got once more.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fencepost.errors import RunFolderError
from fencepost.evidence import event_table, renewed, requests
from fencepost.evidence.segment_reader import Segment
from fencepost.history import HARNESS, EventKind
from fencepost.history.run_folder import RunFolder
from fencepost.model.clients import VERIFIABLE
from fencepost_member.segments import DELIVERED


class Commit(NamedTuple):
    """A commit that was asked for, certainly by ``asked_ns``: the next offset of each partition, by its number."""

    asked_ns: int
    offsets: Mapping[int, int]


def applied(folder: RunFolder, segments: Sequence[Segment]) -> list[Segment]:
    """The same segments, in which dead VerifiableConsumers are done with what they committed past. Without a request
    log, as of an attached cluster, all is as they told it."""
    of_actors: dict[str, list[Segment]] = {}
    for segment in segments:
        if segment.header.layout is DELIVERED:
            of_actors.setdefault(segment.header.actor, []).append(segment)
    done: dict[Path, Segment] = {}
    for actor, commit in _last_commits(folder, _dead(folder, of_actors)).items():
        last_poll = max(int(segment.records["poll"].max(initial=-1)) for segment in of_actors[actor])
        done |= {segment.path: _done(segment, commit, last_poll) for segment in of_actors[actor]}
    return [done.get(segment.path, segment) for segment in segments]


def _done(segment: Segment, commit: Commit, last_poll: int) -> Segment:
    rows = np.array(segment.records)
    in_hand = (rows["done_ns"] == 0) & (rows["poll"] == last_poll) & (rows["delivered_ns"] <= commit.asked_ns)
    for tp, offset in commit.offsets.items():
        mine = in_hand & (rows["tp"] == tp) & (rows["offset"] < offset)
        for name in ("begin_ns", "done_ns"):
            rows[name][mine] = rows["delivered_ns"][mine]
    return replace(segment, records=rows)


def _dead(folder: RunFolder, actors: Collection[str]) -> set[str]:
    """Those of the actors that are VerifiableConsumers, and did not get to their end."""
    those = {actor for actor in actors if _client(folder, actor) == VERIFIABLE}
    events, *_ = event_table.read_rows(folder.history / "events" / f"{HARNESS}.jsonl") if those else ((),)
    ends = {event["actor"]: json.loads(event["detail"]) for event in events if event["kind"] == EventKind.ENDED}
    return {actor for actor in those & ends.keys() if ends[actor].get("how") != "closed"}


def _client(folder: RunFolder, actor: str) -> Any:
    """Which client it told to be, before anything else."""
    path = folder.history / "events" / f"{actor}.jsonl"
    with suppress(OSError, ValueError, KeyError, TypeError), path.open("rb") as lines:
        return json.loads(lines.readline())["detail"]["client"]
    return None


def _last_commits(folder: RunFolder, actors: Collection[str]) -> dict[str, Commit]:
    """What each asked last, by the name that its client tells."""
    found: dict[str, Commit] = {}
    # No log, no audit, damage: a judge says so.
    with suppress(OSError, RunFolderError, ValueError, KeyError, TypeError):
        numbers = renewed.numbers(folder) if actors else {}
        for request in _commits(folder) if actors else ():
            asked = (((topic, p), offset) for topic, p, offset, _ in request["offsets"] or ())
            offsets = {numbers[place]: offset for place, offset in asked if place in numbers}
            asked_ns, actor = request["start_ns"] + request["uncertainty_ns"], request["client_id"]
            if actor in actors and asked_ns >= found.get(actor, Commit(0, {})).asked_ns:
                found[actor] = Commit(asked_ns, offsets)
    return found


def _commits(folder: RunFolder) -> Iterator[Any]:
    with (folder.history / requests.FILE).open(encoding="utf-8") as lines:
        yield from (request for request in map(json.loads, lines) if request["api"] == "OFFSET_COMMIT")
