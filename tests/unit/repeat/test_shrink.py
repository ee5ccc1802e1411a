"""A run that failed is made smaller by trying; noise, time and runs that fail otherwise are reckoned with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import stage
from stage import Shell

from fencepost.faults import Bounce, Pause
from fencepost.model import Validity
from fencepost.model.topic import Topic
from fencepost.repeat.shrink.passes import Case
from fencepost.repeat.shrink.shrinker import Attempt, Budget, Shrinking, Shrunk
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import member
from fencepost.workloads import PollLoop

V = Validity
SCENARIO = Scenario(
    name="orders",
    about="what it shows",
    topics=[Topic("orders", partitions=1)],
    group=Group(members=3),
    workload=PollLoop(),
    schedule=[at(0, Pause(), member(0), heal_after=0.5), at(1, Bounce(), member(1), heal_after=0.5)],
    min_records=1,
)
CASE = Case.of(SCENARIO, SCENARIO.plan(3))
WITHOUT_THE_FIRST = ["as it is", "without any step", "without step 0"]


def names(case: Case) -> list[str]:
    return [type(step.fault).__name__ for step in case.plan.steps]


def run_of(tmp_path: Path, validity: Validity, scenario: Scenario = SCENARIO) -> Path:
    folder = stage.run_folder(tmp_path, scenario, scenario.plan(3))
    folder.write_verdict(stage.verdict(validity))
    return folder.path


def shrunk(fails: Callable[[Case, int], bool | str], effort: Budget = Budget()) -> tuple[Shrunk, list[Case]]:  # noqa: B008
    performed: list[Case] = []

    def attempt(case: Case) -> Attempt:
        performed.append(case)
        came = fails(case, len(performed))
        return Attempt(Path(f"run-{len(performed)}"), came is True, came if isinstance(came, str) else "valid")

    kept: list[Shrunk] = []
    found = Shrinking("unseen", attempt, effort, kept.append).run(CASE)
    assert kept[-1] == found  # whenever somebody ends it, what is known is kept
    assert [len(known.tries) for known in kept] == sorted(len(known.tries) for known in kept)
    return found, performed


def test_what_is_needed_is_left_with_a_run_that_failed_and_its_rate() -> None:
    found, performed = shrunk(lambda case, _: "Bounce" in names(case))
    assert found.case is not None
    assert names(found.case) == ["Bounce"]
    assert [tried["what"] for tried in found.tries][:3] == WITHOUT_THE_FIRST
    assert (found.complete, found.folder) == (True, Path(f"run-{len(performed)}"))
    assert found.rate == "5 of 5 (100 %; with 95 % confidence 57 to 100 %)"
    assert found.tries[1] == {
        "what": "without any step",
        "case": "0 steps, 3 members, 1 partition",
        "fails": False,
        "runs": {"run-3": "valid", "run-4": "valid"},
    }


def test_no_more_runs_are_made_of_a_case_than_tell() -> None:
    _, performed = shrunk(lambda case, _: "Bounce" in names(case), Budget(rate_runs=0))
    assert performed.count(CASE) == 2  # both fail
    nothing = next(case for case in performed if not names(case))
    assert performed.count(nothing) == 2  # neither fails, so the third one changes nothing


def test_a_failure_that_comes_now_and_then_is_believed_after_so_many() -> None:
    found, performed = shrunk(lambda case, n: "Bounce" in names(case) and n != 2, Budget(rate_runs=0))
    assert performed[:3] == [CASE] * 3
    assert found.case is not None
    assert (names(found.case), found.rate) == (["Bounce"], "")


def test_what_does_not_fail_again_is_not_shrunk() -> None:
    found, performed = shrunk(lambda case, n: n == 1)
    assert (found.case, found.folder, performed) == (None, None, [CASE] * 3)


def test_another_failure_is_not_this_one_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = shrunk(lambda case, _: True if len(names(case)) == 2 else "key-order", Budget(rate_runs=0))
    assert found.case is not None
    assert len(names(found.case)) == 2
    assert "without any step: fails in 0 of 2 (but key-order)" in capsys.readouterr().out


def test_when_time_is_over_what_was_found_counts(capsys: pytest.CaptureFixture[str]) -> None:
    found, performed = shrunk(lambda case, _: True, Budget(minutes=0, rate_runs=1))
    assert (found.case, found.complete, performed) == (CASE, False, [CASE] * 3)
    assert "0 minutes are over; a smaller case may be left" in capsys.readouterr().out


def test_the_command_performs_keeps_and_tells(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    acted = stage.set_up(monkeypatch, *[V.INVALID] * 100)
    run = run_of(tmp_path, V.INVALID)
    code, out, _ = shell("shrink", run, "--rate-runs", 2)
    assert code == 0
    assert acted.plans[0] == SCENARIO.plan(3)
    assert {scenario.about for scenario in acted.scenarios} == {SCENARIO.about}
    assert "the smallest case that breaks a promise by unseen: 0 steps, 1 member, 1 partition" in out
    assert "fails in 2 of 2 (100 %" in out
    folder = next(Path("runs").glob(f"{run.name}-shrunk-*"))
    reported = json.loads((folder / "shrunk.json").read_text())
    assert (reported["of"], reported["kind"], reported["complete"]) == (run.name, "unseen", True)
    assert f"repeat it: fencepost replay {folder / reported['run']}" in out


def test_a_run_whose_failure_does_not_come_again_is_unknown(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stage.set_up(monkeypatch, V.VALID, V.UNKNOWN)
    code, out, _ = shell("shrink", run_of(tmp_path, V.INVALID))
    assert code == 3
    assert "as it is: fails in 0 of 2 (but unknown)" in out
    assert "unseen did not reproduce, so there is nothing to shrink" in out


@pytest.mark.parametrize("validity", [V.VALID, V.UNKNOWN])
def test_a_run_that_broke_nothing_cannot_be_shrunk(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, validity: Validity
) -> None:
    acted = stage.set_up(monkeypatch)
    code, _, err = shell("shrink", run_of(tmp_path, validity))
    assert (code, acted.plans) == (2, [])
    assert "broke no promise, so there is nothing to shrink" in err


def test_a_run_that_was_not_judged_cannot_be_shrunk(shell: Shell, tmp_path: Path) -> None:
    run = run_of(tmp_path, V.INVALID)
    (run / "verdict.json").unlink()
    code, _, err = shell("shrink", run)
    assert code == 2
    assert "verdict.json is missing" in err


def test_more_failures_than_runs_cannot_be(shell: Shell, tmp_path: Path) -> None:
    code, _, err = shell("shrink", run_of(tmp_path, V.INVALID), "--failures", 4)
    assert code == 2
    assert "--failures (4) must not exceed --of (3)" in err
