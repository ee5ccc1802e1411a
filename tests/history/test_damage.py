"""Damaged run folders, through the real entries: a sentence that names the file, never a stack trace, never "valid"."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from fencepost.checkers.spark import detector
from fencepost.checkers.spark.session import Spark
from fencepost.cli import commands
from fencepost.errors import RunFolderError
from fencepost.judging import judge
from fencepost_member.recording.events import EventLog
from history import damages, random_histories, retelling
from history.damages import HOSTILE, as_any_user

FILES = [
    "scenario.json",
    "plan.json",
    "history/clock.json",
    "history/partitions.json",
    "history/seal.json",
    "history/coordinator/offsets.jsonl",
    "history/coordinator/requests.jsonl",
    "history/coordinator/metadata.jsonl",
    "history/host.jsonl",
    "history/events.parquet",
    "history/log/audit.parquet",
    "history/produced/producer-0.parquet",
    "history/produced/producer-0.unacked.parquet",
    "history/delivered/member-0.1.parquet",
]
VALID, INVALID, UNKNOWN = 0, 1, 3
WITHIN_S = 10.0


Check = Callable[[Path], tuple[int, str]]


@pytest.fixture(autouse=True)
def permissions_count() -> Iterator[None]:
    with as_any_user():
        yield


@pytest.fixture
def check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Check:
    """``fencepost check`` with the kernel of this process: its exit code and what it said. Errors are none."""
    monkeypatch.setattr(Spark, "start", lambda *_, **__: nullcontext())
    monkeypatch.setattr(detector, "detector", lambda _: detector.find_here)

    def perform(run: Path) -> tuple[int, str]:
        began_s = time.monotonic()
        with pytest.raises(SystemExit) as left:
            commands.main(["check", str(run)])
        assert time.monotonic() - began_s < WITHIN_S
        said = capsys.readouterr()
        assert (said.err, caplog.text) == ("", "")  # a shell shows what is logged, stack traces too
        return int(left.value.code or 0), said.out

    return perform


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return damages.whole_run(tmp_path_factory.mktemp("runs"))


def copied(run: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(run, to))


def test_the_whole_run_is_valid(whole: Path, tmp_path: Path, check: Check) -> None:
    run = copied(whole, tmp_path / "run")
    assert check(run)[0] == VALID
    assert check(retelling.sealed_again(run))[0] == VALID


QUICK = "history/delivered/member-0.1.parquet"


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == QUICK else pytest.mark.slow) for n in FILES])
def test_a_damaged_file_is_named_and_nothing_is_valid(whole: Path, tmp_path: Path, check: Check, name: str) -> None:
    for what, damage in damages.damages(name):
        run = copied(whole, tmp_path / "run")
        damage(run / name)
        code, _ = check(run)
        assert code == UNKNOWN, what
        assert Path(name).name in (run / "verdict.json").read_text(), what
        assert (run / "report.html").stat().st_size, what
        ET.parse(run / "junit.xml")


# What stands there instead of a file.

NOT_JUDGED = ["history/lacking.json", "history/events/member-0.1.jsonl", "history/store.sqlite", "logs/member-0.log"]


@pytest.mark.parametrize("name", NOT_JUDGED)
def test_what_is_no_file_is_named_wherever_it_is(whole: Path, tmp_path: Path, check: Check, name: str) -> None:
    for what in damages.NO_FILES:
        run = copied(whole, tmp_path / "run")
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).touch()
        damages.ANY[what](run / name)
        code, said = check(run)
        assert code == UNKNOWN, what
        assert f"{name}: it cannot be read: " in said, what


@pytest.mark.parametrize("name", FILES)
def test_a_report_names_what_is_no_file(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    for what in damages.NO_FILES:
        run = copied(whole, tmp_path / "run")
        damages.ANY[what](run / name)
        began_s = time.monotonic()
        with pytest.raises(SystemExit) as left:
            commands.main(["report", str(run)])
        assert time.monotonic() - began_s < WITHIN_S, what
        assert (left.value.code or 0, capsys.readouterr().err) == (0, ""), what
        assert f"{name} cannot be read: " in (run / "report.html").read_text(), what


@pytest.mark.parametrize("folder", ["history", "history/delivered", "history/coordinator"])
def test_no_folder_outside_is_listed(whole: Path, tmp_path: Path, check: Check, folder: str) -> None:
    run = copied(whole, tmp_path / "run")
    (run / folder).symlink_to((run / folder).replace(tmp_path / "outside"))
    code, said = check(run)
    assert code == UNKNOWN
    assert folder in said


def test_a_folder_without_permission_is_named(whole: Path, tmp_path: Path, check: Check) -> None:
    for folder in ("history", "history/produced"):
        run = copied(whole, tmp_path / folder.replace("/", "-"))
        (run / folder).chmod(0)
        code, said = check(run)
        (run / folder).chmod(0o700)
        assert code == UNKNOWN
        assert f"{folder}: it cannot be read: Permission denied" in said
    run.chmod(0)
    with pytest.raises(RunFolderError, match="cannot be read: Permission denied"):
        judge(run)
    run.chmod(0o700)


def test_links_that_stay_inside_and_one_to_the_folder_itself_are_followed(
    whole: Path, tmp_path: Path, check: Check
) -> None:
    run = copied(whole, tmp_path / "elsewhere" / "run")
    for name in ("history/host.jsonl", "history/log/audit.parquet", "history/produced"):
        (run / name).symlink_to((run / name).replace(run / Path(name).name))
    (tmp_path / "run").symlink_to(run)
    assert check(tmp_path / "run")[0] == VALID


def test_nothing_is_sealed_where_something_is_no_file(tmp_path: Path, check: Check) -> None:
    run = damages.whole_run(tmp_path / "runs", sealed=False)
    shutil.copytree(run, tmp_path / "pipe")
    (run / "history" / "events.parquet").symlink_to(tmp_path / "outside.parquet")
    code, said = check(run)
    assert (code, "history/events.parquet: it cannot be read: a link leads out of the run folder" in said) == (3, True)
    os.mkfifo(tmp_path / "pipe" / "history" / "events" / "member-9.1.jsonl")
    code, said = check(tmp_path / "pipe")
    assert (code, "member-9.1.jsonl: it cannot be read: a named pipe is in its place" in said) == (3, True)
    sealed = (folder / "history" / "seal.json" for folder in (run, tmp_path / "pipe"))
    assert not any(path.exists() for path in (*sealed, tmp_path / "outside.parquet"))


CLOCKS: dict[str, tuple[str, Callable[[list[retelling.Row]], list[retelling.Row]], str]] = {
    "its readings": (
        "history/clock.json",
        lambda rows: [{**row, "pairs": [*row["pairs"], [row["pairs"][-1][0] - 1, 0]]} for row in rows],
        "history/clock.json: its readings are not in order: the clock went back",
    ),
    "an event": (
        "history/events.parquet",
        lambda rows: [*rows[:-1], {**rows[-1], "end_ns": rows[-1]["begin_ns"] - 1}],
        "history/events.parquet: 1 of its events end before they begin: its clock went back",
    ),
}


@pytest.mark.parametrize("which", CLOCKS)
def test_a_clock_that_went_back_is_told(whole: Path, tmp_path: Path, check: Check, which: str) -> None:
    run, (name, change, reported) = copied(whole, tmp_path / "run"), CLOCKS[which]
    retelling.rewrite(run / name, change)
    code, _ = check(retelling.sealed_again(run))
    assert code == UNKNOWN
    assert reported in (run / "verdict.json").read_text()


@pytest.mark.parametrize("of", ["member", "current"])
def test_a_line_of_a_member_without_its_id_is_damage(whole: Path, tmp_path: Path, check: Check, of: str) -> None:
    run, name = copied(whole, tmp_path / "run"), "history/coordinator/offsets.jsonl"
    line = {"order": 10**9, "at_ns": 1, "type": of, "deleted": False}
    retelling.rewrite(run / name, lambda rows: [*rows, line])
    code, _ = check(retelling.sealed_again(run))
    assert code == UNKNOWN
    assert f"{name}: 1 of its lines cannot be read" in (run / "verdict.json").read_text()


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)


def is_inert(run: Path, said: str) -> None:
    """No string of the run reaches the terminal, the page or JUnit as anything but text."""
    assert said.replace("\n", "").isprintable()
    page = Page()
    page.feed((run / "report.html").read_text(encoding="utf-8"))
    assert "img" not in page.tags
    assert page.tags.count("script") == 1
    ET.parse(run / "junit.xml")


MEANT = {"kind", "type", "api", "outcome", "actor", "how", "client_id", "member_id", "members", "mode", "error"}
MEANT |= {"fault", "expect", "warm-up", "heal", "drain"}


def hostile(half: str) -> retelling.Change:
    """Every text that means nothing to a judge is hostile, as is the topic's name. ``half``: what no Parquet has."""

    def change(name: str, rows: list[retelling.Row]) -> retelling.Files:
        bad = HOSTILE + ("" if name.endswith(".parquet") else half)

        def leaf(field: str, value: object) -> object:
            if value == "orders":
                return f"orders{HOSTILE}"
            means_nothing = isinstance(value, str) and field and not {field, value} & MEANT
            return f"{value}{bad}" if means_nothing else value

        return {name: [retelling.each(row, leaf) for row in rows]}

    return change


@pytest.mark.parametrize("half", ["", "\ud800"], ids=["text", "half a character"])
@pytest.mark.parametrize("tell", [random_histories.tame, random_histories.wild], ids=["tame", "wild"])
def test_hostile_strings_are_shown_and_not_obeyed(
    tmp_path: Path, check: Check, tell: Callable[[Path, int], Path], half: str
) -> None:
    for seed in (0, 1):  # by which wild ones are invalid
        run = retelling.retold(tell(tmp_path, seed), tmp_path / f"{seed}", hostile(half))
        code, said = check(run)
        is_inert(run, said)
        assert (code == VALID) == (tell is random_histories.tame and not half)


# Fuzzed.

STRANGE = st.sampled_from(
    [None, True, -1, 0, 2**31, 2**63 - 1, 2**63, -(2**70), 1.5, "", "x", HOSTILE, "\ud800", [], [[]], {}, {"": None}]
)


def _spoilt(data: st.DataObject, run: Path) -> bool:
    """Spoil some file of ``run``: its bytes, or what it says. Whether it is another one now."""
    path = run / data.draw(st.sampled_from(FILES))
    before = path.read_bytes()
    if data.draw(st.booleans()):
        begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(before))] * 2)))
        path.write_bytes(before[:begin] + data.draw(st.binary(max_size=40)) + before[end:])
    else:
        try:
            retelling.rewrite(path, lambda rows: _spoil(data.draw, rows))
        except (KeyError, TypeError, ValueError, OverflowError, NotImplementedError):
            reject()  # what no such file can hold
    return _meaning(path, path.read_bytes()) != _meaning(path, before)


def _meaning(path: Path, content: bytes) -> object:
    """What a file says: of JSON without the white space."""
    try:
        return json.loads(content) if path.suffix == ".json" else content
    except (ValueError, RecursionError):
        return content


def _spoil(draw: Callable[..., Any], rows: list[retelling.Row]) -> list[retelling.Row]:
    """Something in something in the rows is gone, twice or strange."""
    if not rows:
        return rows
    inside, at = rows, draw(st.integers(0, len(rows) - 1))
    while draw(st.integers(0, 3)) and isinstance(inside[at], dict | list) and inside[at]:
        inside = inside[at]
        at = draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))))
    if inside is rows:
        return [*rows[:at], *rows[at : at + 1] * draw(st.sampled_from([0, 2])), *rows[at + 1 :]]
    if draw(st.booleans()):
        del inside[at]
    else:
        inside[at] = draw(STRANGE)
    return rows


def fuzzed(data: st.DataObject, whole: Path, to: Path, check: Check, *, since: bool) -> None:
    """``since``: it happened since the seal, and is always seen; what was written so, only where it makes no sense."""
    run = copied(whole, to)
    changed = _spoilt(data, run)
    if not since:
        with suppress(ValueError, KeyError, TypeError, RecursionError):  # the seal itself is spoilt
            retelling.sealed_again(run)
    code, said = check(run)
    is_inert(run, said)
    assert code == UNKNOWN if since and changed else code in (VALID, INVALID, UNKNOWN)


@pytest.mark.timeout(3_600)  # of many examples
@pytest.mark.parametrize("since", [True, False], ids=["since the seal", "before the seal"])
@settings(suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(data=st.data())
def test_fuzzed(data: st.DataObject, whole: Path, tmp_path: Path, check: Check, since: bool) -> None:
    fuzzed(data, whole, tmp_path / "run", check, since=since)


# Runs that were killed before their seal.


def test_a_run_that_was_killed_before_its_seal_is_sealed_and_judged(tmp_path: Path, check: Check) -> None:
    run = damages.whole_run(tmp_path, sealed=False)
    assert check(run)[0] == VALID
    assert (run / "history" / "seal.json").exists()


def test_a_run_that_is_still_going_on_is_not_sealed(tmp_path: Path) -> None:
    run = damages.whole_run(tmp_path, sealed=False)
    log = EventLog(run / "history" / "events" / "member-9.1.jsonl", "member-9.1")
    with pytest.raises(RunFolderError, match=r"still in progress: process \d+ .* writes to it"):
        judge(run)
    log.close()
    assert not (run / "history" / "seal.json").exists()


def test_what_the_seal_said_is_not_made_up_again(tmp_path: Path, check: Check) -> None:
    run = damages.whole_run(tmp_path)
    (run / "history" / "seal.json").unlink()
    code, said = check(run)
    assert code == UNKNOWN
    assert "history/seal.json: it is missing" in said
