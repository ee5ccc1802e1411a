"""The member side of Fencepost: the code that runs inside members and producers, in any Python environment.

It has its own import name, ``fencepost_member``, and needs only Python >= 3.8, the standard library and a Kafka client,
so that another environment or a user's program can load it without ``fencepost``.

``loop`` polls and hands records to ``processing``; ``committing`` decides on offsets; ``recording`` writes the times of
every record into memory maps that survive SIGKILL, and rarer facts as JSON lines.
"""
