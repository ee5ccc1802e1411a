"""Contents of records: sample messages, and the errors of their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fencepost.errors import ScenarioError
from fencepost.runner.preflight import check_samples
from fencepost.workloads import OwnProgram
from fencepost_member.config import ConfigError
from fencepost_member.producing.contents import Content, contents_of, read


def samples(folder: Path, *lines: Any) -> str:
    path = folder / "samples.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return str(path)


def test_samples_of_a_key_follow_each_other_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = samples(tmp_path, {"key": "a", "value": 1}, {"key": "b", "value": 2}, {"key": "a", "value": 3})
    contents = contents_of(path, keys=1000)
    assert contents.keys == 2
    written = [contents(number, seq) for seq, number in enumerate([0, 0, 1, 0, 1])]
    assert [(one.key, one.value) for one in written] == [
        *((b"a", b"1"), (b"a", b"3"), (b"b", b"2"), (b"a", b"1"), (b"b", b"2"))
    ]


def test_samples_without_a_key_have_any_partition(tmp_path: Path) -> None:
    contents = contents_of(samples(tmp_path, {"value": "x"}, {"value": "y"}), keys=40)
    assert contents.keys == 40
    assert [contents(number, 0) for number in (7, 3, 7)] == [
        Content(None, b"x"),
        Content(None, b"y"),
        Content(None, b"x"),
    ]


def test_values_and_headers_are_text_or_json_or_nothing(tmp_path: Path) -> None:
    (one,) = read(
        samples(tmp_path, {"key": {"id": 1}, "value": "ü", "headers": {"type": "order", "n": 2, "no": None}}, "")
    )
    assert one == Content(b'{"id": 1}', "ü".encode(), (("type", b"order"), ("n", b"2"), ("no", None)))
    assert read(samples(tmp_path, {"headers": {"fencepost": "of a run", "a": "b"}}))[0].headers == (("a", b"b"),)
    assert read(samples(tmp_path, {"key": "gone", "value": None})) == [Content(b"gone", None)]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ((), "is empty: write one JSON object a line"),
        (({"value": 1}, "{"), "line 2: expected a JSON object, found no JSON"),
        (({"value": 1}, "", "7"), "line 3: expected a JSON object with key, value, headers, found int"),
        (
            ({"id": 1, "cents": 2},),
            "line 1: expected a JSON object with key, value, headers, found the fields 'id', 'cents'",
        ),
        (({"headers": [1]},), "line 1: expected headers as an object, found list"),
        (({"headers": []},), "line 1: expected headers as an object, found list"),
        (('{"value": "\\ud800"}',), "line 1: expected text, found half of a character"),
        (({"key": "a"}, {"value": 1}), "has samples with a key and samples without one"),
    ],
)
def test_a_file_that_is_wrong_is_refused_before_anything_starts(
    tmp_path: Path, lines: tuple[Any, ...], sentence: str
) -> None:
    path = samples(tmp_path, *lines)
    with pytest.raises(ConfigError, match=sentence):
        contents_of(path, keys=1)
    with pytest.raises(ScenarioError, match=sentence):
        check_samples(OwnProgram(payload=path))


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"the file of sample messages .*missing\.jsonl cannot be read: .*No such file"
    ):
        check_samples(OwnProgram(payload=str(tmp_path / "missing.jsonl")))


def test_a_payload_is_a_function_or_a_file_of_samples() -> None:
    with pytest.raises(
        ScenarioError, match=r"payload is 'orders\.json'; it must be of the form module:function, or a file"
    ):
        OwnProgram(payload="orders.json")
    check_samples(OwnProgram(payload="shop.fakes:order"))
