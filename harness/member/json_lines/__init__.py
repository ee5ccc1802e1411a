"""A program in any language as a member: it reports what it does as JSON lines on its standard output.

``line.schema.json`` defines the lines. They are a superset of what Kafka's own ``VerifiableConsumer --verbose`` prints,
so that program is a member without any change. A line is an object with a ``name`` and a ``timestamp``; everything else
that the program prints is ordinary output and goes to its log.

The harness starts the program and, at the other end of its standard output, a *scribe* (``python -m
fencepost_member.json_lines CONFIG.json PID``), which writes the same history as every other member's recorder. The
scribe runs until that pipe is closed, so it also records what a program printed just before it was killed.

**Times.** A ``timestamp`` is a whole millisecond of wall time; the event happened at an unknown moment within it. The
moment at which the scribe reads the line is not used (the program may be paused, the scribe late). A callback
therefore lasts from the beginning of its millisecond to its end, and a commit from the beginning of one millisecond to
the end of another: the recorded time of certain ownership is never too long, and that of possible ownership never too
short. A pause lasts from the beginning of one millisecond to the beginning of another, so that consecutive short pauses
do not overlap. A record has the beginning of its millisecond: records keep their order among each other and with
commits, and a partition takes several round trips, which last longer than a millisecond, to move to another member. A
line whose time is before that of the previous line gets the time of the previous line.

**Missing lines** are not guessed. An answer to a commit without a ``commit_started`` means that the program waited for
the answer and did nothing else: the commit began after the previous line. A poll that began lasts until its records are
reported (``records_consumed`` with no records counts, too) or the next poll begins, however long that takes. Without
``poll_started`` it cannot be shown that a member stopped polling, and without ``partitions_paused`` that a partition
makes no progress because its owner paused it. A line that is wrong, or in an impossible order, makes the verdict
unknown (``unrecorded``).
"""
