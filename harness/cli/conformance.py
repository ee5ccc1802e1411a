"""Whether a program's output is as members with the client ``json-lines`` have to tell, without any cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencepost.errors import ScenarioError
from fencepost_member.lines.order import Order
from fencepost_member.lines.reading import LineError, parse

# What a program may leave out, and what that means for the judgement.
UNTOLD = {
    "poll_started": "nobody can say that a member stopped to poll (stuck-member), and what the next poll ends is not "
    "done before its records come",
    "record_data": "no record is known to have been delivered; a run with such members is invalid",
    "record_processed": "a record is processed by a rule, next-poll or commit; told is not possible",
    "partitions_assigned": "members own nothing; a run with such members does not begin",
    "partitions_lost": "if any were lost, they count as revoked",
    "partitions_paused": "if any were paused, nobody knows that they stand still for that (stuck-partition without its "
    "cause, collateral-stall)",
    "partitions_resumed": "what is paused counts as paused until it is given up",
    "commit_started": "the program must wait for the answer to each commit and do nothing else meanwhile",
    "offsets_committed": "what the client answered to commits is not compared with what the coordinator wrote",
    "shutdown_complete": "each end is a crash; that the member ends in order is not known",
}


@dataclass(frozen=True)
class Conformity:
    """What was found.

    Attributes:
        faults: number of a line -> what is wrong with it.
        counts: name -> how many lines of it were right.
        other: lines of ordinary output.
    """

    faults: Mapping[int, str]
    counts: Mapping[str, int]
    other: int

    def sentences(self) -> Iterator[str]:
        """The faults first, then what was told and what was not."""
        yield from (f"line {number}: {fault}" for number, fault in self.faults.items())
        told = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        yield f"told: {told or 'nothing'}; and {self.other} lines of other output"
        for name, meaning in UNTOLD.items():
            if not self.counts.get(name):
                yield f"not told: {name}: {meaning}"
        yield f"{len(self.faults)} lines cannot be believed" if self.faults else "every line conforms"


def examine(lines: Iterable[bytes]) -> Conformity:
    """Read what a program printed, as a scribe would. Nothing told at all is a fault, too."""
    order, faults, other, number = Order(), dict[int, str](), 0, 0
    for number, text in enumerate(lines, 1):
        try:
            line = parse(text)
        except LineError as error:
            faults[number] = str(error)
            continue
        if line is None:
            other += 1
        elif wrong := "; ".join(order.faults(line)):
            faults[number] = wrong
    if not order.counts and not faults:
        faults[number] = "the output ends, and no line told anything"
    return Conformity(faults, order.counts, other)


def lines_of(output: str) -> Iterator[bytes]:
    """The lines of a file, or of standard input for ``-``. Raises ScenarioError when it cannot be read."""
    if output == "-":
        yield from sys.stdin.buffer
        return
    try:
        with Path(output).open("rb") as file:
            yield from file
    except OSError as error:
        raise ScenarioError(f"{output} cannot be read: {error.strerror}") from error
