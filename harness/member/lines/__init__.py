"""A program in any language as a member: it tells what it does as JSON lines on its standard output.

``line.schema.json`` defines the lines. They are a superset of what Kafka's own ``VerifiableConsumer --verbose`` prints,
which is therefore a member as it is. A line is an object with a ``name`` and a ``timestamp``; everything else that the
program prints is ordinary output, and goes to its log.

The harness starts the program and, at the other end of its standard output, a *scribe* (``python -m
fencepost_member.lines CONFIG.json PID``), which writes the same history as every other member's recorder. It lives
until that pipe is closed, so what a killed program had printed is recorded.

**When.** A ``timestamp`` is a whole millisecond of wall time, in which something happened at an unknown moment; when
the scribe reads of it says nothing (the program may be paused, the scribe late). So a callback lasts from the beginning
of its millisecond to the end of it, a commit from the beginning of one to the end of another: a member certainly owns a
partition for no longer than it did, and possibly for no shorter. It has paused one from the beginning of a millisecond
to the beginning of another, so that short pauses, one after the other, do not overlap. Records have the beginning of
their millisecond: they keep their order among each other and with commits, and from one member to another a partition
passes by several round trips, which take longer than that. A line that says an earlier time than one before it counts
as that one.

**What is not told** is not guessed. An answer to a commit that no ``commit_started`` announced means that the program
waited for it and did nothing else: it was asked for after the line before. A poll that was begun lasts until records
are told (``records_consumed`` of none counts, too) or the next one begins, however long that takes. Without
``poll_started`` nobody can say that a member stopped to poll, and without ``partitions_paused`` that a partition stands
still because its owner paused it. What is told wrongly, or in an order that cannot be, makes the run
unknown (``unrecorded``).
"""
