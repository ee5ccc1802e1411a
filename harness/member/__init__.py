"""The member side of Fencepost: what runs inside members and producers, in whatever Python they live in.

It has an import name of its own, ``fencepost_member``, and needs nothing but Python >= 3.8, its standard library and a
Kafka client, so that another environment or a user's program can load it without loading ``fencepost``.

``recorder`` keeps every record's life in memory maps that survive SIGKILL, ``events`` keeps the rare facts as lines.
"""
