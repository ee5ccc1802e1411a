"""Which Kafka errors are definite, which are retriable, and why: the harness's door to the one table.

The table itself lives with the member side, which needs it without the rest of Fencepost.
"""

from __future__ import annotations

from fencepost_member.outcomes import TABLE, UNKNOWN, Rule, outcome, rule

__all__ = ["TABLE", "UNKNOWN", "Rule", "outcome", "rule"]
