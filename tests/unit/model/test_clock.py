"""The only place that waits: what it forgives, and what its time-out says."""

from __future__ import annotations

import pytest

from fencepost.clock import eventually
from fencepost.errors import ClusterError, WaitTimeout


class Answers:
    """A probe that gives these answers one after the other, the last one for ever; errors are raised."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers)

    def __call__(self) -> object:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_forgiven_error_means_not_yet() -> None:
    probe = Answers(WaitTimeout("no answer"), ClusterError("refused"), None, "there")
    assert eventually(probe, 60, "it", every_s=0, forgive=(WaitTimeout, ClusterError)) == "there"


def test_an_error_that_is_not_forgiven_ends_the_wait() -> None:
    with pytest.raises(ClusterError, match="refused"):
        eventually(Answers(ClusterError("refused")), 60, "it", forgive=(WaitTimeout,))


def test_a_time_out_tells_the_error_of_the_last_look_and_has_it_as_its_cause() -> None:
    failed = WaitTimeout("nobody answered.")
    with pytest.raises(
        WaitTimeout, match=r"^waited 0 s for it.*\. the last attempt failed: nobody answered\. Ask again\.$"
    ) as raised:
        eventually(Answers(failed), 0, "it", hint="Ask again", forgive=(WaitTimeout,))
    assert raised.value.__cause__ is failed


def test_a_time_out_after_a_look_that_worked_has_no_cause() -> None:
    looks = Answers(WaitTimeout("nobody answered"), None)
    with pytest.raises(WaitTimeout, match="state now: 3 of 4") as raised:
        eventually(looks, 0.001, "it", state=lambda: "3 of 4", every_s=0.001, forgive=(WaitTimeout,))
    assert raised.value.__cause__ is None
