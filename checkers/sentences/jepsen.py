"""Jepsen's names, for who knows its tests of Kafka (``jepsen.tests.kafka``, and the Redpanda and Bufstream suites).

It looks at operations; an *internal* anomaly (``int-``) is inside one, and outside of transactions that is one poll.
One name may be for several kinds: ``unseen`` is a record that nobody polled before the end, whether the group committed
past it or left it (``unconsumed``). Polls of subscribers that go back or skip are allowed there; here they are not
inside of one assignment.
"""

from __future__ import annotations

SAME = frozenset({"lost-write", "unseen", "inconsistent-offsets", "nonmonotonic-send"})
OTHER = {"duplicate-write": "duplicate", "unconsumed": "unseen", "aborted-read": "G1a"}
OF_POLLS = {"rewind": "nonmonotonic-poll", "poll-skip": "poll-skip"}


def name(kind: str, cause: str = "") -> str:
    """What Jepsen calls an anomaly of this kind and cause; empty when it has no name for it."""
    if kind in OF_POLLS:
        return f"int-{OF_POLLS[kind]}" if cause == "inside one poll" else OF_POLLS[kind]
    return kind if kind in SAME else OTHER.get(kind, "")
