"""What a user's program may say itself: that it is done with a record. In a run this module is on its import path::

    try:
        from fencepost_member.api import processed
    except ImportError:  # no run of Fencepost
        def processed(record): ...

With ``OwnProgram(processed="told")`` this, and nothing else, makes a record processed. Else, and outside of a run, it
does nothing.
"""

from __future__ import annotations

import os
from typing import Any

from fencepost_member.this_process import CONFIG, PROGRAMS


def processed(record: Any) -> None:
    """The program is done with this record, as a consumer of this process gave it; called by any thread, in any order,
    before that consumer is closed. Of any other object, its topic, partition and offset count."""
    if CONFIG not in os.environ:
        return
    if not PROGRAMS:
        from fencepost_member.instrument.program import Program

        Program.of_environment()
    topic, partition, offset = (_told(record, name) for name in ("topic", "partition", "offset"))
    had = any(program.processed((topic, partition), offset + 1) for program in PROGRAMS)
    if not had and not any(program.takes_part for program in PROGRAMS):
        what = "process %d says that a record is processed, which a consumer of another process was given"
        PROGRAMS[0].unrecorded(what % os.getpid())


def _told(record: Any, name: str) -> Any:
    value = getattr(record, name)
    return value() if callable(value) else value  # confluent-kafka has methods, the others have attributes
