"""``fencepost try``: what happens to a program when members are deployed, killed, frozen or cut off, and brokers move.

A program is started once, to learn what it is (``learning``). Each situation (``situations``) is a run of its own, and
the card (``card``) has one row for each.
"""
