"""The team's list of clusters that runs may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.clusters.attach.allow_list import FILE, AllowList
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.names import PREFIX
from fencepost.clusters.selection import backend
from fencepost.errors import ScenarioError

LIST = '[clusters]\n"m1Ze6AjGRwqarkcxJscgyQ" = "staging"\n"old" = ""\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / FILE).write_text(LIST, encoding="utf-8")
    (tmp_path / "services" / "shop").mkdir(parents=True)
    return tmp_path


def test_the_nearest_file_counts(repository: Path) -> None:
    inside = repository / "services" / "shop"
    assert AllowList.find(inside) == AllowList(repository / FILE, {"m1Ze6AjGRwqarkcxJscgyQ": "staging", "old": ""})
    (inside / FILE).write_text('prefix = "shop."\n[clusters]\n', encoding="utf-8")
    assert AllowList.find(inside) == AllowList(inside / FILE, {}, "shop.")


def test_a_cluster_that_is_not_listed_is_refused_with_the_line_to_add(repository: Path) -> None:
    found = AllowList.read(repository / FILE)
    assert found.refusal("old") == ""
    assert found.refusal("other") == (
        f"the cluster has the id other, but {repository / FILE} allows m1Ze6AjGRwqarkcxJscgyQ (staging), old. "
        'If runs may use this cluster, add the line "other" = "..." below [clusters]'
    )


def test_an_empty_list_allows_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("[clusters]\n", encoding="utf-8")
    assert "allows none" in AllowList.read(tmp_path / FILE).refusal("any")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[clusters", "cannot be read: "),
        ("", r"the table \[clusters\] must have a line"),
        ("clusters = ['one']", r"the table \[clusters\] must have a line"),
        ("[clusters]\none = 1", r"the table \[clusters\] must have a line"),
        ("prefix = ''\n[clusters]", r"prefix is ''; it must have"),
        ("prefix = 'shop'\n[clusters]", r"prefix is 'shop'; it must have .*end with"),
        ("prefix = 'a b-'\n[clusters]", r"prefix is 'a b-'; it must have"),
        ("prefix = 1\n[clusters]", r"prefix is 1; it must have"),
        ("prefix = '__'\n[clusters]", r"prefix is '__'; it must have .*begin with a letter"),
        ('[clusters]\n"" = "any"', r"the table \[clusters\] must have a line"),
        ("allowed = 1\n[clusters]", "found allowed; use only prefix, clusters"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match=why):
        AllowList.find(tmp_path)


def test_all_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("allowed = 1\nprefix = 'shop'", encoding="utf-8")
    with pytest.raises(ScenarioError) as refused:
        AllowList.find(tmp_path)
    for reported in ("found allowed", "prefix is 'shop'", "[clusters]"):
        assert reported in str(refused.value)


def test_a_list_decides_the_names_and_permits_other_machines(repository: Path) -> None:
    (repository / FILE).write_text(f'prefix = "shop-chaos-"\n{LIST}', encoding="utf-8")
    attached = backend("attach:kafka.example:9092", folder=repository)
    assert isinstance(attached, Attachment)
    assert attached.permitted
    assert attached.prefix.startswith("shop-chaos-")
    assert attached.for_another_run().prefix.startswith("shop-chaos-")


def test_without_a_list_a_cluster_of_another_machine_is_not_permitted(tmp_path: Path) -> None:
    attached = backend("attach:kafka.example:9092", folder=tmp_path)
    assert isinstance(attached, Attachment)
    assert not attached.permitted
    assert attached.prefix.startswith(PREFIX)


def test_a_file_that_is_not_there_although_it_has_the_name_is_no_missing_list(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to(tmp_path / "moved away")
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        AllowList.find(tmp_path)
