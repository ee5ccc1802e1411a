"""A random history can be told again by its transcript, and what fails is shrunk to a few lines that fail, too."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from fencepost.checkers.kernel import repeats
from history import odd_histories, random_histories
from history.builder import HistoryBuilder
from history.shrinking import SHRINKING_S, Tell, check_each
from history.test_kernel_equals_oracle import agreed
from history.transcript import retold, rounded, script, transcript

SEEDS = range(20)
TELLERS = pytest.mark.parametrize(
    "tell", [random_histories.tame, random_histories.wild, odd_histories.tell], ids=["tame", "lives", "odd"]
)


@TELLERS
def test_a_transcript_tells_the_same_history(tmp_path: Path, tell: Tell) -> None:
    for seed in SEEDS:
        lines = transcript(partial(tell, tmp_path / "drawn", seed))
        again = retold([line.of(line.size) for line in lines], tmp_path / "again")
        assert fingerprints(again) == fingerprints(tell(tmp_path, seed))


def fingerprints(run: Path) -> object:
    return json.loads((run / "history" / "seal.json").read_text())["fingerprints"]


def test_a_line_is_said_as_one_would_write_it(tmp_path: Path) -> None:
    def tell() -> None:
        h = HistoryBuilder(tmp_path, 2, keys=3, classic=False)
        h.write(3, tp=1, hole=2)
        a = h.member(0, at=0.5)
        rows = a.process(range(2, 5), 1.1 + 2.2, 1, each=0.001)
        rows[1].begin_ns += 10**9
        a.deliver(3, 5, 1).begin(5.1234)
        a.revoked(6, took=None)

    lines = [line.of(line.size) for line in transcript(tell)]
    assert script([rounded(line, 3) for line in lines]) == [
        "h = HistoryBuilder(folder, 2)",
        "h.write(3, tp=1, hole=2)",
        "member_0_1 = h.member(0, at=0.5)",
        "rows3 = member_0_1.process([2, 3, 4], 3.3, 1)",
        "rows3[1].begin_ns = ns(4.301)",
        "row5 = member_0_1.deliver(3, 5, 1)",
        "row5.begin(5.123)",
        "member_0_1.revoked(6, took=None)",
    ]


@pytest.mark.timeout(SHRINKING_S)
@pytest.mark.slow
def test_what_tells_finders_apart_is_shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that calls it a loop also where a fault explains why one record comes again and again."""
    with monkeypatch.context() as patch:
        patch.setattr(repeats, "_faulty", lambda *_: False)
        with pytest.raises(AssertionError, match="it is enough to tell this") as failure:
            check_each(random_histories.wild, tmp_path, SEEDS, agreed)
        lines = re.findall(r"^    (.*)", str(failure.value), re.MULTILINE)
        print(*lines, sep="\n")
        assert len(lines) <= 8
        assert sum("h.fault(" in line or ".pause(" in line for line in lines) == 1
        with pytest.raises(AssertionError):
            agreed(retold(lines, tmp_path))
    agreed(retold(lines, tmp_path))


def test_what_fails_only_once_is_not_shrunk(tmp_path: Path) -> None:
    def once(run: Path) -> None:
        (tmp_path / "seen").mkdir()
        raise AssertionError(run)

    def check(run: Path) -> None:
        if not (tmp_path / "seen").exists():
            once(run)

    with pytest.raises(AssertionError, match="not shrunk: NoSuchExample"):
        check_each(random_histories.wild, tmp_path, [0], check)
