"""The examples in the pages work: commands, scenarios in TOML, programs in Python.

Each command line is parsed by the program that it is for; commands that are quick and need no cluster are performed.
Scenarios are loaded and planned. Programs are executed, page by page; the scenarios and entries in them are planned.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import certifi
import pytest
import typer.main
from history.approved import PROMISES
from history.builder import HistoryBuilder
from test_pages import PAGES, TOP

from fencepost import Group, Scenario, Topic
from fencepost.checkers import oracle
from fencepost.checkers.judge import judge
from fencepost.cli import commands, conformance
from fencepost.clusters.attach import allow_list
from fencepost.clusters.attach.access import read_access
from fencepost.history.run_folder import RunFolder
from fencepost.scenario import loader
from fencepost.scenario.overrides import override
from fencepost.workloads import PollLoop
from fencepost_member.adapters.settings import ACCESS

Check = Callable[[list[str]], None]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(fencepost \w[^`|…]*)`")
RUN = "runs/demo-7-20261128-051840"  # the run folder that the pages name
ORDERS = {"name": "orders", "topics": [{"name": "orders"}], "group": {"members": 3}}
SEED = 7


def blocks(page: Path, *languages: str) -> list[str]:
    """The fenced blocks of ``page`` in these languages."""
    return [text for language, text in BLOCK.findall(page.read_text()) if language in languages]


def command_lines(page: Path) -> list[str]:
    """What a reader of ``page`` may type, in fenced blocks and in sentences, without comments."""
    fenced = (line for text in blocks(page, "sh", "console") for line in text.replace("\\\n", "").splitlines())
    typed = [shlex.join(shlex.split(line, comments=True)) for line in (*fenced, *INLINE.findall(page.read_text()))]
    return [line for line in dict.fromkeys(typed) if line]


def every_command() -> list[str]:
    return list(dict.fromkeys(line for page in PAGES for line in command_lines(page)))


# Command lines: each program checks its own arguments.


def check_fencepost(arguments: list[str]) -> None:
    """The command exists and accepts these options; a scenario exists and accepts the changes."""
    group = typer.main.get_command(commands.app)
    name, *rest = arguments
    command = group.commands[name]  # type: ignore[attr-defined]
    if not rest:  # a sentence about the command
        return
    given = command.make_context(name, rest).params
    if name == "list":
        assert given["kind"] in list(commands.listing.Kind), given["kind"]
    if name == "run":
        scenario = given["scenario"]
        asked = Scenario.from_json(ORDERS) if Path(scenario).suffix else loader.load(scenario)
        override(asked, given["settings"] or ()).plan(SEED)


@cache
def options_of_pytest() -> set[str]:
    shown = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"], cwd=TOP, capture_output=True, text=True, check=True
    )
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", shown.stdout))


def check_pytest(arguments: list[str]) -> None:
    """The options exist, and so do the files."""
    assert {one for one in arguments if one.startswith("-")} <= options_of_pytest()
    assert all((TOP / one).is_file() for one in arguments if one.endswith(".py"))


def check_make(arguments: list[str]) -> None:
    """There is such a target."""
    targets = re.findall(r"^([a-z]+):", (TOP / "Makefile").read_text(), re.MULTILINE)
    assert {one for one in arguments if "=" not in one} <= set(targets)


def check_pip(arguments: list[str]) -> None:
    """The extras exist."""
    extras = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert arguments[0] == "install"
    assert {extra for one in re.findall(r"\[(.*)\]", arguments[1]) for extra in one.split(",")} <= set(extras)


def check_export(arguments: list[str]) -> None:
    """PySpark refuses arguments that do not end so."""
    given = dict(one.split("=", 1) for one in arguments)
    assert given.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell").split()[-1] == "pyspark-shell"


PROGRAMS: dict[str, Check] = {
    "fencepost": check_fencepost,
    "pytest": check_pytest,
    "make": check_make,
    "pip": check_pip,
    "export": check_export,
}


def check_command(line: str) -> None:
    program, *arguments = shlex.split(line)
    PROGRAMS[program](arguments)


@pytest.mark.parametrize("line", every_command())
def test_a_command_is_accepted(line: str) -> None:
    check_command(line)


# Quick commands: they are performed.


def perform(line: str) -> int:
    """The exit code of a command line of Fencepost."""
    with pytest.raises(SystemExit) as end:
        commands.main(shlex.split(line)[1:])
    return int(end.value.code or 0)


def lines_of(*names: str) -> list[str]:
    return [line for line in every_command() if line.startswith(tuple(f"fencepost {name}" for name in names))]


@pytest.fixture
def run_of_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A judged run folder under the name that the pages use, below the current directory: one record is lost."""
    history = HistoryBuilder(tmp_path / "written", promises=PROMISES)
    history.write(3)
    member = history.member(0)
    member.assigned(at=1)
    member.process(range(2), at=2)
    member.commit(3, at=3)
    member.close(at=9)
    run = tmp_path / RUN
    run.parent.mkdir()
    history.seal().rename(run)
    RunFolder.open(run).write_verdict(judge(run, oracle.detect))
    monkeypatch.chdir(tmp_path)
    return run


@pytest.mark.parametrize("line", lines_of("list"))
def test_a_list_is_printed(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform(line) == commands.Exit.VALID
    assert len(capsys.readouterr().out.splitlines()) > 5


def test_the_doctor_examines_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert perform("fencepost doctor") in {commands.Exit.VALID, commands.Exit.FAILED}
    assert "back-end" in capsys.readouterr().out


@pytest.mark.parametrize("line", lines_of(f"report {RUN}"))
def test_a_report_is_drawn(line: str, run_of_the_pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands.webbrowser, "open", lambda uri: None)
    assert perform(line) == commands.Exit.VALID
    assert "INVALID" in (run_of_the_pages / "report.html").read_text().upper()


@pytest.mark.spark
@pytest.mark.parametrize("line", lines_of(f"check {RUN}"))
def test_a_run_is_judged(line: str, run_of_the_pages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform(line) == commands.Exit.INVALID
    assert "unseen" in capsys.readouterr().out


def test_there_are_commands_to_perform() -> None:
    assert len(every_command()) > 40
    assert all((lines_of("list"), lines_of("doctor"), lines_of(f"report {RUN}"), lines_of(f"check {RUN}")))


def test_json_lines_are_believed(tmp_path: Path) -> None:
    (text,) = (text for page in PAGES for text in blocks(page, "json"))
    found = conformance.examine(line.encode() for line in text.splitlines())
    assert not found.faults


# Scenarios, and programs.


def check_toml(text: str, folder: Path) -> None:
    """A list of clusters can be read; a scenario, completed where an example shows a part of one, can be planned."""
    if "[clusters]" in text:
        (folder / allow_list.FILE).write_text(text, encoding="utf-8")
        assert allow_list.AllowList.find(folder)
        return
    Scenario.from_json({**ORDERS, **tomllib.loads(text)}).plan(SEED)


class Shown(ast.NodeTransformer):
    """Keeps the value of each statement that is nothing but a value, under the name ``shown``."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """``value`` becomes ``shown(value)``."""
        return ast.Expr(ast.Call(ast.Name("shown", ast.Load()), [node.value], []))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Functions stay as they are."""
        return node


def check_python(texts: list[str]) -> Iterator[Scenario]:
    """Execute the programs of a page, one after the other; the scenarios that they make, and one for each entry."""
    shown: list[Any] = []
    names: dict[str, Any] = {"__name__": "example", "shown": shown.append}
    for text in texts:
        tree = ast.fix_missing_locations(Shown().visit(ast.parse(text)))
        exec(compile(tree, "example", "exec"), names)
    yield from (value for value in (*names.values(), *shown) if isinstance(value, Scenario))
    group = Group(members=3, spare=2, config={"session.timeout.ms": 6000})
    yield from (
        Scenario("example", [Topic("orders")], group, PollLoop(), schedule=[value])
        for value in shown
        if not isinstance(value, Group | Scenario)  # then it is an entry of a schedule
    )


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=lambda page: page.stem)
def test_examples_in_toml_can_be_read(page: Path, tmp_path: Path) -> None:
    for text in blocks(page, "toml"):
        check_toml(text, tmp_path)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_programs_work_and_their_scenarios_can_be_planned(page: Path) -> None:
    for scenario in check_python(blocks(page, "python")):
        scenario.plan(SEED)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "properties")], ids=lambda page: page.stem)
def test_settings_of_access_are_accepted(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(certifi.where(), "ca.pem")
    for text in blocks(page, "properties"):
        Path("client.properties").write_text(text, encoding="utf-8")
        assert read_access(Path("client.properties"))


def test_the_page_lists_all_settings_of_access() -> None:
    page = (TOP / "docs/choose-a-back-end.md").read_text(encoding="utf-8")
    table = page.split("### Access")[1].split("### Rights")[0]
    assert set(re.findall(r"`((?:security|sasl|ssl|https)\.[a-z.]+)`", table)) == {*ACCESS}


def test_each_block_has_a_language_that_is_tested() -> None:
    languages = {language for page in PAGES for language in re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)}
    assert languages <= {"", "sh", "console", "toml", "python", "json", "properties"}


BROKEN_COMMANDS = [
    "fencepost runn demo",
    "fencepost run demoo",
    "fencepost run demo --sed 7",
    "fencepost run demo --set workload.rate=3",
    "fencepost list verbs",
    "pytest --chaos-sed 7",
    "pytest tests/test_nothing.py",
    "make tests",
    "pip install 'fencepost[nothing]'",
    "kafka-topics --list",
]


@pytest.mark.parametrize("line", BROKEN_COMMANDS)
def test_a_command_that_is_not_accepted_is_found(line: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 whatever the program raises
        check_command(line)


@pytest.mark.parametrize("text", ["nam = 'x'", "[[schedule]]\nat = 1\nfault = 'paus'", "[workload]\ntype = 'poll'"])
def test_a_scenario_that_is_wrong_is_found(text: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011
        check_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        "from fencepost import nothing",
        "at(5)",
        "from fencepost import at\nfrom fencepost.faults import Kill\nat(5, Kill(), heal=1)",
    ],
)
def test_a_program_that_is_wrong_is_found(text: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011
        list(check_python([text]))
