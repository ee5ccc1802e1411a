"""The layout is a promise: this test keeps it. The rules are in ``layout_rules``; each is shown to be able to fail."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

import layout_rules as rules
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TOP = Path(__file__).parent.parent
FOLDERS = ("harness", "faults", "workloads", "checkers", "tests")
TEXTS = {".py", ".toml", ".txt", ".md", ".yaml", ".yml", ".html", ".css", ".js", ".sha256", ".j2", ""}
# Loaded by every pytest session that has Fencepost installed, or by a test module that names a scenario.
LIGHT = ["fencepost", "fencepost.plugin", "fencepost.targets", "fencepost.workloads", "fencepost.checkers"]


@cache
def sources() -> list[rules.Source]:
    files = [path for folder in FOLDERS for path in sorted((TOP / folder).rglob("*.py"))]
    return [rules.Source(path.relative_to(TOP).as_posix(), path.read_text(encoding="utf-8")) for path in files]


@pytest.mark.parametrize("rule", rules.PYTHON_RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule: rules.Rule) -> None:
    complaints = [complaint for source in sources() for complaint in rule(source)]
    assert not complaints, "\n".join(complaints)


def test_no_modules_import_each_other() -> None:
    assert rules.circles(sources()) == []


def test_modules_that_import_each_other_are_found() -> None:
    texts = {"a": "import fencepost.group.b", "b": "def f():\n    from fencepost.group.a import x", "c": "import os"}
    circle = rules.circles(rules.Source(f"harness/group/{name}.py", text) for name, text in texts.items())
    assert {*circle} == {"fencepost.group.a", "fencepost.group.b"}


def test_no_two_classes_have_one_name() -> None:
    assert not rules.names_of_two_classes(sources())


def test_two_classes_of_one_name_are_found() -> None:
    texts = {
        "a": "class Group: ...\nclass Consumer: ...\nclass _Own: ...",
        "b": "class Group: ...\nclass Consumer: ...\nclass _Own: ...",
    }
    found = rules.names_of_two_classes(rules.Source(f"harness/group/{name}.py", text) for name, text in texts.items())
    assert found == ["found the class Group in harness/group/a.py, harness/group/b.py: use another name"]


def test_names_that_several_classes_may_have_are_those_of_several() -> None:
    """What is excused and no longer needs it would hide the next one."""
    classes = [n.name for s in sources() if s.part != "tests" for n in s.tree.body if isinstance(n, ast.ClassDef)]
    assert {name for name in rules.ALIKE if classes.count(name) < 2} == set()


@cache
def file_names() -> list[str]:
    folders = (TOP / name for name in FOLDERS if name != "tests")
    return [path.name for folder in folders for path in folder.rglob("*") if path.suffix != ".pyc"]


def test_every_name_in_a_docstring_exists() -> None:
    complaints = rules.missing_names(sources(), file_names())
    assert not complaints, "\n".join(complaints)


def test_a_name_in_a_docstring_that_does_not_exist_is_found() -> None:
    text = '"""See ``run``, ``Group.run``, ``lost-write``, ``site``, ``gone`` and ``Group.gone(it)``."""'
    code = "class Group:\n    def run(self):\n        return 'lost-write'"
    found = rules.missing_names([rules.Source("harness/group/a.py", f"{text}\n{code}")], ["site.css"])
    assert [complaint.split("``")[1] for complaint in found] == ["gone", "Group.gone"]


def test_no_file_names_a_registry_or_a_place_on_one_machine() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=TOP,
        capture_output=True,
        check=False,
    ).stdout.decode()
    files = [TOP / name for name in listed.split("\0") if name] or [TOP / s.path for s in sources()]
    texts = [path for path in files if path.is_file() and path.suffix in TEXTS]
    assert texts
    complaints = [
        complaint
        for path in texts
        for complaint in rules.no_place_is_written_down(
            rules.Source(path.relative_to(TOP).as_posix(), path.read_text(encoding="utf-8", errors="replace"))
        )
    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("folder", ["faults", "workloads"])
def test_every_plug_in_is_exported_by_name(folder: str) -> None:
    package = importlib.import_module(f"fencepost.{folder}")
    files = {path.stem for path in (TOP / folder).glob("*.py") if not path.stem.startswith("_")}
    wanted = {"".join(part.capitalize() for part in stem.split("_")) for stem in files}
    assert set(package.__all__) == wanted, f"fencepost.{folder}.__all__ must list its plug-ins"
    assert list(package.__all__) == sorted(package.__all__), "keep the list sorted"


def test_everything_that_a_package_exports_is_there() -> None:
    for name in [*LIGHT, "fencepost.faults"]:
        package = importlib.import_module(name)
        missing = [export for export in getattr(package, "__all__", ()) if not hasattr(package, export)]
        assert not missing, f"{name} exports {missing} but does not have it"


def test_the_top_level_holds_what_the_design_says() -> None:
    visible = {path.name for path in TOP.iterdir() if not path.name.startswith(".")}
    generated = {"build", "dist", "runs"} | {name for name in visible if name.endswith(".egg-info")}
    files = {"pyproject.toml", "setup.py", "constraints.txt", "README.md", "Makefile", "LICENSE", "CHANGELOG.md"}
    assert visible - generated == files | set(FOLDERS) | {"docker", "docs"}


def undeclared(found: Iterable[rules.Source], dependencies: Iterable[str]) -> list[str]:
    """What the product imports of libraries that no dependency names; that another one brings it along may end."""
    declared = {canonicalize_name(Requirement(line).name) for line in dependencies}
    brought_by = metadata.packages_distributions()
    return [
        f"{source.path}:{line}: found import of {top}, use a line in pyproject.toml that declares it"
        for source in found
        for line, name in source.imports()
        if source.part != "tests" and rules.foreign(top := name.split(".")[0])
        if declared.isdisjoint(map(canonicalize_name, brought_by.get(top, [top])))
    ]


def test_every_library_that_is_imported_is_declared() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    dependencies = [*project["dependencies"], *(line for name in extras if name != "dev" for line in extras[name])]
    assert not (complaints := undeclared(sources(), dependencies)), "\n".join(complaints)


def test_an_import_that_is_not_declared_is_found() -> None:
    imports = rules.Source("harness/runner/drain.py", "import json\nfrom requests import get\nimport fencepost.model")
    assert len(undeclared([imports], ["docker>=7"])) == 1
    assert undeclared([imports], ["docker>=7", "Requests>=2"]) == []


def loaded_by(*modules: str) -> set[str]:
    """The packages of others that importing ``modules`` loads on top of pytest."""
    program = (
        "import pytest, sys, importlib; before = set(sys.modules);"
        f"[importlib.import_module(name) for name in {modules!r}];"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split()) - set(sys.stdlib_module_names) - {"fencepost", "fencepost_member"}


def test_what_pytest_and_scenarios_load_is_the_standard_library_alone() -> None:
    assert loaded_by(*LIGHT) == set()


def test_faults_load_nothing_heavy() -> None:
    assert loaded_by("fencepost.faults") <= {"psutil"}


def test_the_command_line_starts_without_spark_arrow_and_clients() -> None:
    heavy = {"pyspark", "pyarrow", "confluent_kafka", "numpy", "kafka", "docker", "testcontainers"}
    assert "typer" in loaded_by("fencepost.cli.commands")
    assert not loaded_by("fencepost.cli.commands") & heavy


# One file for each way to break a rule: the rule, where the file is, what is in it.
BROKEN = [
    ("imports_go_one_way", "harness/model/__init__.py", "from fencepost.history.run_folder import RunFolder"),
    ("imports_go_one_way", "harness/model/__init__.py", "from fencepost import Scenario"),
    ("imports_go_one_way", "harness/clusters/local.py", "import fencepost.runner"),
    ("imports_go_one_way", "harness/history/run_folder.py", "def f():\n    from fencepost.cli.commands import app"),
    ("imports_go_one_way", "faults/pause.py", "from fencepost.runner import run"),
    ("imports_go_one_way", "checkers/promises/order.py", "from fencepost.judging import judge"),
    ("imports_go_one_way", "harness/reports/html.py", "from fencepost.checkers import judge"),
    ("imports_go_one_way", "harness/member/loop.py", "from fencepost.model import Outcome"),
    ("imports_go_one_way", "harness/brand_new.py", ""),
    ("the_judged_do_not_import_the_specification", "checkers/kernel/x.py", "from fencepost.checkers.oracle import a"),
    (
        "the_judged_do_not_import_the_specification",
        "checkers/oracle/x.py",
        "import fencepost.checkers.kernel.task_data",
    ),
    ("libraries_stay_in_their_place", "harness/runner/__init__.py", "import pyspark.sql"),
    ("libraries_stay_in_their_place", "harness/runner/__init__.py", "def f():\n    from pyspark import SparkContext"),
    ("libraries_stay_in_their_place", "harness/clusters/local.py", "import docker"),
    ("libraries_stay_in_their_place", "harness/clusters/doctor.py", "from testcontainers.core.network import Network"),
    ("libraries_stay_in_their_place", "harness/group/running_group.py", "from kafka.admin import KafkaAdminClient"),
    ("libraries_stay_in_their_place", "harness/group/running_group.py", "from toxiproxy import Toxiproxy"),
    ("libraries_stay_in_their_place", "harness/scenario/scenario.py", "import numpy as np"),
    ("libraries_stay_in_their_place", "harness/plugin.py", "import rich"),
    ("libraries_stay_in_their_place", "harness/member/recording/recorder.py", "import numpy"),
    ("libraries_stay_in_their_place", "harness/history/run_folder.py", "from tests.unit import helpers"),
    ("members_run_on_old_python", "harness/member/loop.py", "match 1:\n    case 1:\n        pass"),
    ("members_run_on_old_python", "harness/member/loop.py", "def f[T](x: T) -> T: ..."),
    ("plug_ins_are_one_class_a_file", "faults/pause.py", "class Freeze: ..."),
    ("plug_ins_are_one_class_a_file", "faults/pause.py", "class Pause: ...\nclass Resume: ..."),
    ("plug_ins_are_one_class_a_file", "workloads/poll_loop.py", "POLL = 1"),
    ("functions_are_short", "tests/unit/test_x.py", "def f():\n" + "    x = 1\n" * 70),
    ("no_place_is_written_down", "README.md", "download it from pypi." + "org"),
    ("no_place_is_written_down", "Makefile", "cd /" + "home/ann/fencepost"),
]


LINTED = [
    ("E722", "harness/runner/x.py", "try:\n    pass\nexcept:\n    pass"),
    ("D100", "harness/runner/x.py", "import os"),
    ("D100", "tests/unit/test_x.py", "import os"),
    ("D104", "tests/unit/__init__.py", "import os"),
    ("TID252", "harness/history/x.py", "from .model import Verdict"),
    ("TID251", "tests/unit/test_x.py", "import time\ntime.sleep(1)"),
    ("TID251", "harness/runner/x.py", "from time import sleep\nsleep(1)"),
    ("TID251", "harness/runner/x.py", "import asyncio\nasyncio.sleep(1)"),
]


@pytest.mark.parametrize(("rule", "path", "text"), LINTED)
def test_the_linter_finds_what_no_rule_here_looks_for(rule: str, path: str, text: str) -> None:
    argv = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--output-format=concise",
        "--stdin-filename",
        path,
        "-",
    ]
    done = subprocess.run(argv, cwd=TOP, input=text, capture_output=True, text=True, check=False)
    assert f" {rule} " in done.stdout


@pytest.mark.parametrize(("rule", "path", "text"), BROKEN)
def test_a_file_that_breaks_the_rule_is_found(rule: str, path: str, text: str) -> None:
    complaints = list(getattr(rules, rule)(rules.Source(path, text)))
    assert len(complaints) == 1
    assert "found" in complaints[0]
    assert "use" in complaints[0]
