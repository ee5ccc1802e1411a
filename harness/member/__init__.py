"""The member side of Fencepost: the code that runs inside members and producers, in any Python environment.

It has its own import name, ``fencepost_member``, and needs only Python >= 3.8, the standard library and a Kafka client,
so that another environment or a user's program can load it without ``fencepost``.

``recorder`` records the times of every record in memory maps that survive SIGKILL; ``events`` writes rarer facts as
JSON lines.
"""
