"""The function by which a user's program reports that it has processed a record.

In a run this module is on the program's import path::

    try:
        from fencepost_member.api import processed
    except ImportError:  # outside a run of Fencepost
        def processed(record): ...

With ``OwnProgram(processed="told")`` a record is processed when this function is called for it, and by nothing else.
With any other rule, and outside a run, the function does nothing.
"""

from __future__ import annotations

import os
from typing import Any

from fencepost_member.this_process import CONFIG, PROGRAMS


def processed(record: Any) -> None:
    """Report a record as processed. Call it on any thread, in any order, before the record's consumer is closed.

    Args:
        record: a record of a consumer in this process, or any object with its topic, partition and offset.
    """
    if CONFIG not in os.environ:
        return
    if not PROGRAMS:
        from fencepost_member.instrument.program import InstrumentedProgram

        InstrumentedProgram.of_environment()
    topic, partition, offset = (_told(record, name) for name in ("topic", "partition", "offset"))
    had = any(program.processed((topic, partition), offset + 1) for program in PROGRAMS)
    if not had and not any(program.takes_part for program in PROGRAMS):
        message = "process %d reports a record as processed that a consumer of another process received"
        PROGRAMS[0].unrecorded(message % os.getpid())


def _told(record: Any, name: str) -> Any:
    value = getattr(record, name)
    return value() if callable(value) else value  # confluent-kafka has methods, the others have attributes
