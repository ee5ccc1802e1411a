"""A scribe: ``python -m fencepost_member.json_lines CONFIG.json PID``, with the output of program PID as its input.

It copies ordinary output to its own standard output, which is the member's log.
"""

from __future__ import annotations

import faulthandler
import sys
from typing import BinaryIO

from fencepost_member.config import read_member
from fencepost_member.json_lines.reading import LineError, parse
from fencepost_member.json_lines.translator import SettableClock, Translator
from fencepost_member.process import open_history
from fencepost_member.recording.events import EventLog


def write(story: Translator, events: EventLog, moment: SettableClock, lines: BinaryIO, log: BinaryIO) -> None:
    """Write the history that ``lines`` report, until the input ends; copy ordinary output and bad lines to ``log``."""
    known_bad = False
    for number, text in enumerate(lines, 1):
        try:
            line = parse(text) if text.endswith(b"\n") else None  # the last line of a killed program is torn
            if line is not None:
                story.translate(line)
                continue
        except LineError as error:
            message = "line %d of its output cannot be believed: %s" % (number, error)
            log.write(b"fencepost: %s\n" % message.encode("utf-8", "replace"))
            if not known_bad:
                moment.now()
                events.note("unrecorded", detail={"text": message})
            known_bad = True
        log.write(text)
        log.flush()
    story.end_poll()


def main() -> int:
    """Record one member to the end of its output."""
    faulthandler.enable()
    config, pid, moment = read_member(sys.argv[1]), int(sys.argv[2]), SettableClock()
    events, recorder = open_history(config.run, config.actor, moment)
    try:
        story = Translator(config, pid, events, recorder.lane(), moment)
        write(story, events, moment, sys.stdin.buffer, sys.stdout.buffer)
    except BaseException as error:
        moment.now()
        events.note("unrecorded", detail={"text": "its scribe failed with %r" % error})
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
