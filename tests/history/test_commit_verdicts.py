"""What ``Commits`` makes of its kinds: when a promise is broken, what it permits, and when nobody can say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.judge import judge
from fencepost.model import Check, Severity, Validity
from history import test_commit_kinds as stories
from history.builder import HistoryBuilder
from history.test_kinds import rest, two

COMMITS: dict[str, Any] = {"type": "commits"}


def check(folder: Path, story: Any, *without: str, **options: Any) -> Check:
    h = HistoryBuilder(folder, 2, promises=[{**COMMITS, **options}])
    story(h, True)
    verdict = judge(h.seal(without=without), oracle.detect)
    return next(c for c in verdict.checks if c.check == "commits")


def kinds(of: Check) -> set[tuple[str, Severity]]:
    return {(f.kind, f.severity) for f in of.findings}


def test_a_group_that_commits_what_it_has_done_is_valid_and_says_how_many_were_judged(tmp_path: Path) -> None:
    judged = check(tmp_path, lambda h, wrong: rest(two(h)[0], 6))
    assert (judged.validity, judged.facts_judged, judged.reason) == (Validity.VALID, 2, "kept over 2 commits")


def test_without_an_accepted_commit_nobody_can_say(tmp_path: Path) -> None:
    def idle(h: HistoryBuilder, wrong: bool) -> None:
        h.write(3)
        h.member(0).assigned(1)

    judged = check(tmp_path, idle)
    assert judged.validity == Validity.UNKNOWN
    assert judged.reason.startswith("0 commits were judged, and 1 are needed: no commit was ever accepted")


def test_before_processing_permits_to_commit_ahead_and_nothing_else(tmp_path: Path) -> None:
    strict = check(tmp_path / "a", stories.a_commit_before_the_records_were_sent)
    assert strict.validity == Validity.INVALID
    assert kinds(strict) == {("commit-ahead", Severity.VIOLATION), ("commit-beyond-end", Severity.VIOLATION)}
    loose = check(tmp_path / "b", stories.a_commit_before_the_records_were_sent, order="before-processing")
    assert loose.validity == Validity.INVALID
    assert kinds(loose) == {("commit-ahead", Severity.PERMITTED), ("commit-beyond-end", Severity.VIOLATION)}


def test_a_regression_that_its_writer_healed_is_a_note(tmp_path: Path) -> None:
    def healed(h: HistoryBuilder, wrong: bool) -> None:
        stories.a_retry_that_heals_itself(h, False)

    judged = check(tmp_path, healed)
    assert (judged.validity, kinds(judged)) == (Validity.VALID, {("commit-regression", Severity.NOTE)})


REQUESTS, OFFSETS = "history/coordinator/requests.jsonl", "history/coordinator/offsets.jsonl"


@pytest.mark.parametrize(
    ("story", "lost", "left"),
    [
        (stories.a_commit_after_the_hand_over, REQUESTS, set()),  # nobody knows who wrote it
        (stories.a_start_past_the_committed_offset, REQUESTS, {"wrong-start"}),
        (stories.a_commit_that_failed_in_silence, OFFSETS, set()),
        (stories.a_commit_that_goes_back_and_is_believed, OFFSETS, {"commit-regression"}),
        (stories.a_fenced_member_that_carries_on, "plan.json", {"work-after-fencing"}),
        (stories.a_commit_before_the_records_were_done, "history/log/audit.parquet", set()),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_missing_may_explain_it(tmp_path: Path, story: Any, lost: str, left: set[str]) -> None:
    judged = check(tmp_path, story, lost)
    assert judged.validity == Validity.UNKNOWN
    assert kinds(judged) == {(kind, Severity.NOTE) for kind in left}
