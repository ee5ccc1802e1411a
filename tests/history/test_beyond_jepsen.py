"""The ten histories in which Jepsen's checker looks away (``beyond_jepsen``): each breaks exactly what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.judge import Detector, judge
from fencepost.checkers.spark.detector import find_here
from history import beyond_jepsen
from history.beyond_jepsen import DEMONSTRATIONS, Demonstration, shown


@pytest.mark.parametrize("find", [oracle.detect, find_here], ids=["oracle", "kernel"])
@pytest.mark.parametrize("demo", DEMONSTRATIONS, ids=lambda demo: demo.tell.__name__)
def test_each_promise_judges_it_as_told(tmp_path: Path, demo: Demonstration, find: Detector) -> None:
    judged = {promise: shown(judge(demo.build(tmp_path, promise), find)) for promise in demo.verdicts}
    assert judged == demo.verdicts


def test_a_round_of_a_minute_is_told_though_nothing_is_promised_about_it(tmp_path: Path) -> None:
    (demo,) = (d for d in DEMONSTRATIONS if d.tell is beyond_jepsen.one_member_holds_the_barrier_for_a_minute)
    verdict = judge(demo.build(tmp_path, next(iter(demo.verdicts))), find_here)
    assert max(r["took_s"] for r in verdict.rebalances) == pytest.approx(60.1)


def test_the_page_leads_to_the_report_of_each_under_each_of_its_promises(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beyond_jepsen.main(tmp_path / "demonstrations")
    page = Path(capsys.readouterr().out.strip())
    reported = page.read_text(encoding="utf-8")
    assert all(demo.title in reported for demo in DEMONSTRATIONS)
    links = re.findall(r"<a href='(.*?)'>", reported)
    assert len(links) == sum(len(demo.verdicts) for demo in DEMONSTRATIONS)
    assert all((page.parent / link).is_file() for link in links)
