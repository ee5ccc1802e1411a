"""The pages of the project lead where they say: links, their anchors, and the files that are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencepost import checkers, faults, workloads

TOP = Path(__file__).parent.parent
PAGES = sorted(
    path
    for folder in ("", "harness/**/", "faults/", "workloads/", "checkers/", "docker/", "tests/**/")
    for path in TOP.glob(f"{folder}README.md")
)
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
NAMED = re.compile(r"`((?:harness|faults|workloads|checkers|docker|tests)/[\w./-]*)`")


def anchors(page: str) -> set[str]:
    """What one may link to in a page, as GitHub names its headings."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> list[str]:
    dead = []
    for link in LINK.findall(page.read_text()):
        file, _, anchor = link.partition("#")
        leads_to = page.parent / file if file else page
        if not leads_to.exists() or (anchor and anchor not in anchors(leads_to.read_text())):
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_a_page_leads_where_it_says(page: Path) -> None:
    assert dead_links(page) == []
    assert [name for name in NAMED.findall(page.read_text()) if not (TOP / name).exists()] == []


def test_the_readme_names_each_fault_workload_and_promise() -> None:
    readme = (TOP / "README.md").read_text()
    stems = [re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in faults.__all__]
    assert [stem for stem in stems if f"`{stem}`" not in readme] == []
    assert [name for name in (*workloads.__all__, *checkers.__all__) if not re.search(rf"`{name}[`(]", readme)] == []


def test_each_part_that_the_readme_leads_to_has_a_page() -> None:
    assert len(PAGES) >= 9


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# One\n\n## Two, and `three`\n\n[a](#two-and-three) [b](#three) [c](gone.md) [d](README.md#one)\n")
    assert dead_links(page) == ["#three", "gone.md"]
