"""The run folder: found again from anywhere, never half written, and what is wrong with it is a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.errors import RunFolderError
from fencepost.history.atomic import replacing
from fencepost.history.run_folder import RunFolder, opened
from fencepost.model import Check, Finding, Severity, Validity, Verdict

FINDING = Finding("rewind", Severity.VIOLATION, 3, "", ({"members": ["member-1.1"], "sentence": "It went back."},))
VERDICT = Verdict("s", 7, Validity.INVALID, (Check("delivery", "p", Validity.INVALID, 10, "why", (FINDING,)),))


def test_a_folder_below_a_relative_path_is_named_absolutely(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = RunFolder.create(tmp_path.relative_to(tmp_path) / "runs", "orders & refunds", 7)
    assert folder.path.is_absolute()
    assert folder.path.name.startswith("orders-refunds-7-")
    assert folder.history.is_dir()


def test_two_runs_of_one_second_have_two_folders(tmp_path):
    assert RunFolder.create(tmp_path, "s", 1).path != RunFolder.create(tmp_path, "s", 1).path


def test_a_verdict_survives_the_way_through_its_file(tmp_path):
    folder = RunFolder.create(tmp_path, "s", 1)
    folder.write_verdict(VERDICT)
    again = Verdict.from_json(folder.read_json("verdict.json"))
    assert (again.validity, again.checks[0].findings[0].kind) == (Validity.INVALID, "rewind")
    assert json.loads(json.dumps(again.to_json())) == json.loads(json.dumps(VERDICT.to_json()))
    assert [p.name for p in folder.path.iterdir() if p.is_file()] == ["verdict.json"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "is missing"),
        ("{", "cannot be read"),
        ("[]", "does not contain a JSON object"),
        ('{"format_version": 99}', "has format version 99"),
        ("{}", "has format version None"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path, text, sentence):
    folder = RunFolder.create(tmp_path, "s", 1)
    if text is not None:
        (folder.path / "plan.json").write_text(text)
    with pytest.raises(RunFolderError, match=rf"plan\.json {sentence}"):
        folder.read_json("plan.json")


def test_what_is_no_run_folder_is_said_to_be_none(tmp_path):
    with pytest.raises(RunFolderError, match="there is no run folder"):
        RunFolder.open(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match=r"is not a run folder: it has none of scenario\.json"):
        RunFolder.open(tmp_path)


def test_a_place_that_cannot_hold_runs_is_said_to_be_none(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match=r"the run folder .* cannot be made"):
        RunFolder.create(tmp_path / "file", "s", 1)


def test_a_device_is_not_opened():
    with pytest.raises(OSError, match="a device is in its place"):
        opened(Path("/dev"), Path("/dev/zero"))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with replacing(file) as draft:
        draft.write_text("first")
    with pytest.raises(ZeroDivisionError), replacing(file) as draft:  # noqa: PT012
        draft.write_text("sec")
        assert file.read_text() == "first"
        raise ZeroDivisionError
    assert [*tmp_path.iterdir()] == [file]
    assert file.read_text() == "first"
