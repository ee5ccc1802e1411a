"""Runs take turns on a machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.errors import ClusterError, WaitTimeout
from fencepost.processes import concurrency

ELSEWHERE = ("unshare", "--user", "--map-user=1234")
HOLDER = """
import sys
from pathlib import Path
from fencepost.processes import concurrency
concurrency.max_concurrent_runs = lambda: 2
with concurrency.run_permit(sys.argv[2], Path(sys.argv[1]), within_s=0):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def nobody_above_holds_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(concurrency.HELD, raising=False)


def holder(folder: Path, what: str) -> subprocess.Popen[str]:
    """Another process that holds a place in ``folder`` until its input ends."""
    argv = [sys.executable, "-c", HOLDER, str(folder), what]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_machine_has_at_least_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(concurrency.MAX_RUNS, raising=False)
    assert concurrency.max_concurrent_runs() >= 1


def test_a_machine_has_as_many_places_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(concurrency.MAX_RUNS, "37")
    assert concurrency.max_concurrent_runs() == 37


@pytest.mark.parametrize("asked", ["0", "two"])
def test_what_is_no_number_of_places_is_refused(asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(concurrency.MAX_RUNS, asked)
    with (
        pytest.raises(ClusterError, match=f"='{asked}'; use the number of concurrent runs, 1 or more"),
        concurrency.run_permit("mine", tmp_path),
    ):
        pass


def test_a_full_machine_lets_nobody_in_and_says_who_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "max_concurrent_runs", lambda: 2)
    reported: list[str] = []
    with holder(tmp_path, "demo, seed 7") as first, holder(tmp_path, "another") as second:
        who = rf"demo, seed 7 \(process {first.pid}, since [\d:]+\) and another \(process {second.pid}, since [\d:]+\)"
        with (
            pytest.raises(WaitTimeout, match=f"held by {who}"),
            concurrency.run_permit("mine", tmp_path, within_s=0, report=reported.append),
        ):
            pass
        assert len(reported) == 1, "it is said once, not at every look"
        assert "this machine carries 2 runs at once" in reported[0]
        second.communicate()
        with concurrency.run_permit("mine", tmp_path, within_s=0, report=reported.append):
            assert len(reported) == 1, "who need not wait hears nothing"
        first.communicate()


def test_a_place_is_given_back_when_the_run_fails_and_when_its_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrency, "max_concurrent_runs", lambda: 2)

    def fails() -> None:
        with concurrency.run_permit("mine", tmp_path, within_s=0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert concurrency.HELD not in os.environ
    with holder(tmp_path, "lives on") as other:
        with holder(tmp_path, "killed") as killed:
            killed.kill()
            killed.communicate()
        with concurrency.run_permit("mine", tmp_path, within_s=0):
            pass
        other.communicate()


def test_who_holds_a_place_shares_it_with_what_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "max_concurrent_runs", lambda: 2)
    with holder(tmp_path, "another") as another, concurrency.run_permit("outer", tmp_path, within_s=0):
        with concurrency.run_permit("inner", tmp_path, within_s=0):
            pass
        assert concurrency.HELD in os.environ, "the inner one does not give the outer one's place back"
        with holder(tmp_path, "a child") as child:
            child.communicate()
        another.communicate()


def test_users_who_are_somebody_else_in_a_user_namespace_keep_their_place() -> None:
    """``unshare --map-root-user`` makes everybody user 0: two of them would share a folder that is one's alone."""
    if subprocess.run([*ELSEWHERE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system makes no user namespace")
    code = "import os; from fencepost.processes import concurrency; print(os.getuid(), concurrency._user())"
    reported = subprocess.run(
        [*ELSEWHERE, sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert reported.split() == ["1234", str(os.getuid())]
