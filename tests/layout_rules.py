"""The rules of the layout, each a function from one source file to its complaints ("found X, use Y")."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

FUNCTION_MAX = 70

NOUNS = ["errors", "model", "history", "interfaces", "outcomes", "codec", "plan", "schedule", "targets", "settings"]
NOUNS += ["signs", "states", "single", "combined", "survival", "swarm", "entries", "scenario", "network_interfaces"]
NOUNS += ["admin_interfaces", "process_interfaces", "clients", "consumers", "described", "abilities", "isolation"]
NOUNS += ["compaction"]
PURE = [*NOUNS, "overrides", "smaller"]
BASE = [*PURE, "catalogue", "clock"]  # what everybody may import: pure, but for reading a scenario and a clock
EFFECTS = [
    "store",
    "schema",
    "retries",
    "cleaner",
    "processes",
    "turns",
    "versions",
    "injector",
    "group",
    "inside",
    "live",
    "lives",
    "member_process",
    "outside",
    "commands",
    "programs",
    "phases",
    "world",
    "watch",
]
EFFECTS += ["aim", "topics", "draining"]
EFFECTS += ["clusters", "network", "evidence"]
ENTRIES = ["library_logs", "cli", "plugin", "doctor", "listing", "progress", "judging", "brief", "__main__"]
ENTRIES += ["arguments", "conforming", "choice", "terminal", "series", "replay", "shrink", "steering", "seeds"]
# Layer -> its parts, and the parts that they may import. A part is the first name after ``fencepost.``.
LAYERS: dict[str, tuple[list[str], list[str]]] = {
    "pure": (PURE, [*PURE, "fencepost_member.outcomes", "fencepost_member.adapters.settings"]),
    "base": (["catalogue", "clock", "__init__"], BASE),
    "faults": (["faults"], [*BASE, "evidence", "faults"]),
    "workloads": (
        ["workloads"],
        [*BASE, "checkers", "workloads", "fencepost_member.config", "fencepost_member.planted"],
    ),
    "checkers": (
        ["checkers"],
        [*BASE, "store", "clusters.cache", "clusters.provision", "checkers", "fencepost_member.payload"],
    ),
    "reports": (["reports"], [*BASE, "store", "reports"]),
    "effects": (EFFECTS, [*BASE, *EFFECTS, "fencepost_member"]),
    "runner": (["runner"], [*BASE, *EFFECTS, "fencepost_member"]),
    "member": (["fencepost_member"], ["fencepost_member"]),
    "entries": (ENTRIES, [*BASE, *EFFECTS, *ENTRIES, "runner", "checkers", "reports", "fencepost_member"]),
}
OF_PYTEST = ("library_logs", "plugin", "seeds")
STDLIB_ONLY = [*BASE, "__init__", *OF_PYTEST, "workloads"]
# Library -> the only places that import it.
PLACES: dict[str, str | tuple[str, ...]] = {
    "pyspark": "checkers/spark/",
    "py4j": "checkers/spark/",
    "docker": "harness/clusters/docker",
    "kafka": (
        "harness/clusters/admin",
        "harness/member/adapters/kafka_python",
        "harness/member/instrument/kafka_python.py",
    ),
    "aiokafka": ("harness/member/adapters/aiokafka.py", "harness/member/instrument/aiokafka.py"),
    "toxiproxy": "harness/network/proxies.py",
    "typer": ("harness/cli.py", "harness/arguments.py"),
    "jinja2": "harness/reports/",
    "psycopg": "harness/member/databases.py",
    "msgspec": "checkers/tables/",
}
OF_MEMBERS = ("confluent_kafka", "kafka", "aiokafka", "psycopg")
PLUG_INS = ("faults/", "workloads/")
# Spelled so that this file does not match them itself.
HOSTS = re.compile(r"\b(?:pypi[.]org|pythonhosted[.]|repo1?[.]maven|proxy[.]golang|registry-1[.]|quay[.]io|ghcr[.]io)")
MACHINE_PATHS = re.compile(r"(?<![\w.~}])/(?:work|root|home/\w+|Users/\w+|opt/wheels)/")


@dataclass(frozen=True)
class Source:
    """One Python file: its path from the top of the repository, with slashes, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text, self.path)

    @property
    def part(self) -> str:
        """What the file belongs to: the first name after ``fencepost.``, or ``fencepost_member``, or ``tests``."""
        if self.path.startswith("harness/member/"):
            return "fencepost_member"
        return self.path.removeprefix("harness/").split("/")[0].removesuffix(".py")

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and full name of everything imported, ``from a import b`` as ``a.b``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.lineno, f"{'.' * node.level}{node.module or ''}.{a.name}") for a in node.names)


Rule = Callable[[Source], Iterator[str]]


def imports_go_one_way(source: Source) -> Iterator[str]:
    """Pure parts import pure parts, plug-ins never the runner, nobody imports what is above it."""
    if source.part == "tests":
        return
    allowed = next((may for parts, may in LAYERS.values() if source.part in parts), None)
    if allowed is None:
        yield f"{source.path}: found a module in no layer, use LAYERS of tests/layout_rules.py to give it one"
        return
    for line, name in source.imports():
        if name.startswith("."):
            yield f"{source.path}:{line}: found the relative import {name}, use the full name"
        own = (
            re.match(r"(?:fencepost\.)?(.*)", name) if name.split(".")[0] in ("fencepost", "fencepost_member") else None
        )
        if own and not any(own[1] == part or own[1].startswith(f"{part}.") for part in allowed):
            yield f"{source.path}:{line}: found import of {name}, use only {', '.join(allowed)}"


def the_judged_do_not_import_the_specification(source: Source) -> Iterator[str]:
    """The kernel is compared with the oracle: neither may be made of the other. Both ask the tables."""
    for other, folders in {"oracle": ("kernel", "spark", "coordination", "tables"), "kernel": ("oracle",)}.items():
        if source.path.startswith(tuple(f"checkers/{folder}/" for folder in folders)):
            for line, name in source.imports():
                if name.startswith(f"fencepost.checkers.{other}"):
                    yield f"{source.path}:{line}: found import of {name}, use checkers/tables/ for what both need"


def libraries_stay_in_their_place(source: Source) -> Iterator[str]:
    """One module talks to a library; the rest of the code does not know it. The core needs no library at all."""
    for line, name in source.imports():
        top = name.split(".")[0]
        place = PLACES.get(top)
        if place and source.part != "tests" and not source.path.startswith(place):
            yield f"{source.path}:{line}: found import of {top}, use it in {place} alone"
        if top == "tests":
            yield f"{source.path}:{line}: found import of tests, use code that is installed"
        foreign = top not in sys.stdlib_module_names and top not in ("fencepost", "fencepost_member")
        excused = OF_MEMBERS if source.part == "fencepost_member" else ("pytest",) if source.part in OF_PYTEST else ()
        bare = source.part in STDLIB_ONLY or source.part == "fencepost_member"
        if foreign and bare and top not in excused:
            yield f"{source.path}:{line}: found import of {top}, use the standard library"


def members_run_on_old_python(source: Source) -> Iterator[str]:
    """The member side is loaded by programs of Python 3.8 and later."""
    if source.part != "fencepost_member":
        return
    try:
        ast.parse(source.text, source.path, feature_version=(3, 8))
    except SyntaxError as error:
        yield f"{source.path}:{error.lineno}: found syntax newer than Python 3.8, use the older form ({error.msg})"


def plug_ins_are_one_class_a_file(source: Source) -> Iterator[str]:
    """``move_coordinator.py`` holds ``MoveCoordinator`` and no other public class."""
    name = source.path.rpartition("/")[2].removesuffix(".py")
    if not source.path.startswith(PLUG_INS) or name.startswith("_"):
        return
    found = [node.name for node in source.tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    wanted = "".join(part.capitalize() for part in name.split("_"))
    if found != [wanted]:
        yield f"{source.path}: found the public classes {found}, use exactly [{wanted!r}]"


def nobody_sleeps(source: Source) -> Iterator[str]:
    """Waiting is bounded and explains itself: ``eventually`` and ``ticks`` of the clock."""
    if source.path == "harness/clock.py":
        return
    names = {name for _, name in source.imports()}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("time.sleep", "asyncio.sleep") or (called == "sleep" and "time.sleep" in names):
                yield f"{source.path}:{node.lineno}: found {called}(), use eventually() or ticks() of fencepost.clock"


def errors_are_named(source: Source) -> Iterator[str]:
    """A bare ``except`` swallows Ctrl-C as well."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield f"{source.path}:{node.lineno}: found a bare except, use the exception that you mean"


def modules_say_what_they_are_for(source: Source) -> Iterator[str]:
    """Every module opens with a docstring."""
    if not ast.get_docstring(source.tree):
        yield f"{source.path}:1: found no docstring, use one that says what the module is for"


def functions_are_short(source: Source) -> Iterator[str]:
    """A function that does not fit on a screen does two things. A module is as long as its one idea."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_MAX:
                yield f"{source.path}:{node.lineno}: found {node.name}() of {length} lines, use {FUNCTION_MAX} at most"


def no_place_is_written_down(source: Source) -> Iterator[str]:
    """No registry hosts, no paths of one machine; this rule holds for every text file."""
    for number, line in enumerate(source.text.splitlines(), 1):
        for pattern, instead in ((HOSTS, "the tool's own configuration"), (MACHINE_PATHS, "a relative path")):
            if match := pattern.search(line):
                yield f"{source.path}:{number}: found {match[0]}, use {instead}"


PYTHON_RULES: tuple[Rule, ...] = (
    imports_go_one_way,
    the_judged_do_not_import_the_specification,
    libraries_stay_in_their_place,
    members_run_on_old_python,
    plug_ins_are_one_class_a_file,
    nobody_sleeps,
    errors_are_named,
    modules_say_what_they_are_for,
    functions_are_short,
)
