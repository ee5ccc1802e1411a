"""A consumer that was made before a fork, and is polled in the child: its owner never hears of what it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.model import Finding, Severity, Validity, Verdict
from history.builder import HistoryBuilder, MemberTeller
from history.test_kernel_equals_oracle import verdict_of


def owner(h: HistoryBuilder) -> MemberTeller:
    """Of one partition for the coordinator, in which ten records wait from the end of the warm-up on."""
    h.write(10)
    a = h.member(0)
    h.join(a, 0.94)
    h.gives(a, 0, 0.95)
    a.close(39.9)
    return a


def findings(verdict: Verdict) -> dict[str, Finding]:
    found = [f for check in verdict.checks for f in check.findings if f.severity is Severity.VIOLATION]
    return {finding.kind: finding for finding in found}


def builder(folder: Path) -> HistoryBuilder:
    return HistoryBuilder(folder, promises=[{"type": "progress", "within_s": 30}])


def test_who_is_polled_by_a_fork_alone_is_named_with_that_cause(tmp_path: Path) -> None:
    h = builder(tmp_path)
    owner(h).polled_by_fork(1.5)
    verdict = verdict_of(h)
    assert verdict.validity is Validity.INVALID
    found = findings(verdict)
    assert {kind: f.reason for kind, f in found.items()} == {"stuck-partition": "forked", "unconsumed": ""}
    (stuck,), (left,) = found["stuck-partition"].examples, found["unconsumed"].examples
    assert stuck["sentence"] == (
        "For 39.000 s (from 1.000 s to 40.000 s) records of orders-0 waited, from offset 0 on, and none was delivered "
        "while member-0.1 owned it: its program polled the consumer in a forked process, which receives no "
        "records."
    )
    assert "the last owner of orders-0 was member-0.1" in left["sentence"]


def test_who_never_hears_of_a_partition_for_another_reason_does_not_own_it(tmp_path: Path) -> None:
    h = builder(tmp_path)
    owner(h)
    assert findings(verdict_of(h))["stuck-partition"].reason == "unowned"


@pytest.mark.parametrize("forked", [False, True])
def test_who_is_polled_in_its_own_process_and_gets_on_is_right(tmp_path: Path, forked: bool) -> None:
    """Whatever its forks do beside that."""
    h = builder(tmp_path)
    a = owner(h)
    a.assigned(1.2, reported=False)
    a.process(range(10), 2)
    a.commit(10, 3)
    if forked:
        a.polled_by_fork(1.5)
    assert verdict_of(h).validity is Validity.VALID
