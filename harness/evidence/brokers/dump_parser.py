"""Parses the output of Kafka's own dump tool for a log: records with their batch, without interpreting them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fencepost.errors import FencepostError

_BATCH = re.compile(
    r"baseOffset: (?P<base>\d+) .*?producerId: (?P<producer>-?\d+) .*?partitionLeaderEpoch: (?P<term>-?\d+) "
    r"isTransactional: (?P<transactional>true|false) isControl: (?P<control>true|false) "
)
_RECORD = re.compile(r"\| offset: (?P<offset>\d+) (?:CreateTime|LogAppendTime): (?P<wall_ms>-?\d+) ")
_MARKER = re.compile(r"endTxnMarker: (?P<marker>COMMIT|ABORT)")
_JSON = json.JSONDecoder()


@dataclass(frozen=True)
class Record:
    """One record of a log.

    Attributes:
        batch: first offset of its batch.
        term: the leader's epoch when it was appended.
        producer: producer id of its transaction; -1: none.
        marker: ``COMMIT`` or ``ABORT`` at the end of a transaction, else empty.
        key, payload: as the dump tool decoded them; a payload of None is a tombstone.
    """

    offset: int
    wall_ms: int
    batch: int
    term: int
    producer: int = -1
    marker: str = ""
    key: dict[str, Any] | None = None
    payload: dict[str, Any] | None = None


class DamagedDumpError(FencepostError):
    """A dump that cannot be read: the log is damaged, or the dump tool of this Kafka has another output format."""


def read(lines: Iterable[str]) -> Iterator[Record]:
    """The records of a dump, in the order of the log. Other control records than ends of transactions are left out.

    Raises:
        DamagedDumpError: a record cannot be read; the message shows it.
    """
    batch, term, producer, control = -1, -1, -1, False
    for line in lines:
        if head := _BATCH.match(line):
            batch, term = int(head["base"]), int(head["term"])
            producer = int(head["producer"]) if head["transactional"] == "true" else -1
            control = head["control"] == "true"
        elif found := _RECORD.match(line):
            about: dict[str, Any] = {"producer": producer}
            if control and (marker := _MARKER.search(line, found.end())):
                about["marker"] = marker["marker"]
            elif " payload: " in line:
                try:
                    about |= {"key": _json_after(" key: ", line), "payload": _json_after(" payload: ", line)}
                except ValueError as error:
                    raise DamagedDumpError(f"a record of the dump cannot be read ({error}): {line[:300]}") from error
            else:
                continue  # leader changes and snapshots of the log itself
            yield Record(int(found["offset"]), int(found["wall_ms"]), batch, term, **about)
        elif line.startswith("|"):
            raise DamagedDumpError(f"a record of the dump cannot be read (it has no offset and time): {line[:300]}")


def _json_after(mark: str, line: str) -> dict[str, Any] | None:
    """The JSON object after ``mark``; None if there is none, as for tombstones and records without a key.

    The key precedes the payload, so the search for the payload's mark begins after the key's object.
    """
    at = line.find(mark)
    if mark != " key: " and (key := line.find(" key: {")) >= 0:
        _, end = _JSON.raw_decode(line, key + len(" key: "))
        at = line.find(mark, end)
    begin = at + len(mark)
    if at < 0 or not line.startswith("{", begin):
        return None
    value, _ = _JSON.raw_decode(line, begin)
    return dict(value)
