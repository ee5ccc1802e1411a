"""Checks a program's output against the format of the client ``json-lines``, without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencepost.errors import ScenarioError
from fencepost_member.json_lines.protocol_check import ProtocolCheck
from fencepost_member.json_lines.reading import LineError, parse

# Lines that a program may omit, and the consequences for the judge.
UNREPORTED = {
    "poll_started": "no check can see that a member stopped polling (stuck-member), and under the rule next-poll a "
    "record counts as processed only when the next records arrive",
    "record_data": "no record is known to have been delivered; a run with such members is invalid",
    "record_processed": "the rule told is not possible: a record counts as processed by the rule next-poll or commit",
    "partitions_assigned": "members own no partition; a run with such members does not begin",
    "partitions_lost": "lost partitions count as revoked",
    "partitions_paused": "a paused partition looks like one that does not progress (stuck-partition without its cause, "
    "collateral-stall)",
    "partitions_resumed": "a paused partition counts as paused until it is revoked",
    "commit_started": "the program must wait for the answer to each commit and do nothing else meanwhile",
    "offsets_committed": "the answers to commits are not compared with the coordinator's records",
    "shutdown_complete": "each exit of the program counts as a crash",
}


@dataclass(frozen=True)
class Conformity:
    """The result of the check.

    Attributes:
        faults: line number -> the reason why the line is wrong.
        counts: name -> number of correct lines with this name.
        other: number of lines of ordinary output.
    """

    faults: Mapping[int, str]
    counts: Mapping[str, int]
    other: int

    def sentences(self) -> Iterator[str]:
        """The faults first, then the kinds of line that were found, then the missing kinds."""
        yield from (f"line {number}: {fault}" for number, fault in self.faults.items())
        found = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        yield f"found: {found or 'nothing'}; and {self.other} lines of other output"
        for name, meaning in UNREPORTED.items():
            if not self.counts.get(name):
                yield f"missing: {name}: {meaning}"
        yield f"{len(self.faults)} lines are invalid" if self.faults else "every line conforms"


def examine(lines: Iterable[bytes]) -> Conformity:
    """Check the lines that a program printed by the rules of a run. Output without a line of the format is a fault."""
    order, faults, other, number = ProtocolCheck(), dict[int, str](), 0, 0
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
        faults[number] = "the output ends without a line of the format; startup_complete must be the first"
    return Conformity(faults, order.counts, other)


def lines_of(output: str) -> Iterator[bytes]:
    """The lines of a file, or of standard input for ``-``.

    Raises:
        ScenarioError: the file cannot be read.
    """
    if output == "-":
        yield from sys.stdin.buffer
        return
    try:
        with Path(output).open("rb") as file:
            yield from file
    except OSError as error:
        raise ScenarioError(f"{output} cannot be read: {error.strerror}") from error
