"""The rules of the layout, each a function from one source file to its complaints ("found X, use Y").

Here are those that the linter does not have; ``pyproject.toml`` has the others (docstrings, relative imports, sleep).
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

FUNCTION_MAX = 70

# The parts of the product, from the lowest to the highest; each imports itself and lower ones. A part is the first name
# after ``fencepost.``: a folder, or a file at the top of ``harness``.
RANKS = (
    *("fencepost_member", "errors", "clock", "model", "history", "interfaces", "schedule", "states", "targets"),
    *("scenario", "__init__", "processes", "evidence", "witnesses", "faults", "network", "group", "clusters"),
    *("reports", "checkers", "workloads", "runner", "console", "judging", "repeat", "battery", "seeds"),
    *("cli", "plugin"),
    "__main__",
)
OF_PYTEST = ("harness/plugin.py", "harness/seeds.py", "harness/console/library_logs.py")
STDLIB_ONLY = ("errors", "clock", "model", "history", "interfaces", "schedule", "states", "targets", "scenario")
STDLIB_ONLY += ("__init__", "workloads", "fencepost_member")
# Library -> the only places that import it.
PLACES: dict[str, str | tuple[str, ...]] = {
    "pyspark": "checkers/spark/",
    "py4j": "checkers/spark/",
    "docker": "harness/clusters/docker",
    "testcontainers": "harness/clusters/docker/",
    "kafka": (
        "harness/clusters/admin/",
        "harness/member/adapters/kafka_python",
        "harness/member/instrument/kafka_python.py",
    ),
    "aiokafka": ("harness/member/adapters/aiokafka.py", "harness/member/instrument/aiokafka.py"),
    "toxiproxy": "harness/network/proxies.py",
    "typer": "harness/cli/",
    "jinja2": "harness/reports/",
    "psycopg": "harness/member/databases.py",
    "msgspec": "checkers/tables/",
}
OF_MEMBERS = ("confluent_kafka", "kafka", "aiokafka", "psycopg")
PLUG_INS = ("faults/", "workloads/")
# Class names that several modules may have, as they mean the same in each.
OF_LIBRARIES = "takes the place of the class of that name in one client library"
ALIKE = dict.fromkeys(("Consumer", "Producer", "CoordinatorCalls"), OF_LIBRARIES)
# Spelled so that this file does not match them itself.
HOSTS = re.compile(r"\b(?:pypi[.]org|pythonhosted[.]|repo1?[.]maven|proxy[.]golang|registry-1[.]|quay[.]io|ghcr[.]io)")
MACHINE_PATHS = re.compile(r"(?<![\w.~}])/(?:work|root|home/\w+|Users/\w+|opt/wheels)/")
# A name in a docstring: ``like.this``, ``like-this`` or ``this(…)``.
NAMED = re.compile(r"``([A-Za-z_][\w.-]*)(?:\([^`]*\))?``")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
EXAMPLE = re.compile(r"-[\dN]")  # an actor or a partition, like ``member-2.1``
# What the product does not spell: names of Kafka, clients and tools, and names that it composes.
NOT_SPELLED = {"ABORT", "CLOCK_MONOTONIC", "CONTROLLERb", "CoordinatorRuntime", "DeserializingConsumer"}
NOT_SPELLED |= {"DockerCompose", "KafkaContainer", "RedpandaContainer", "conftest.py"}
NOT_SPELLED |= {"FENCEPOST_BOOTSTRAP", "FP01", "GroupMetadataManager", "INTERNALb"}
NOT_SPELLED |= {"InconsistentGroupProtocolError", "MetaPathFinder", "SPARK_CONF_DIR", "Uuid"}
NOT_SPELLED |= {"c3", "git", "pyproject.toml", "randomUuid", "rd_kafka_cgrp_op_serve", "yarn"}


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

    @property
    def module(self) -> str:
        """Its name as it is imported."""
        path = self.path.removesuffix(".py").removesuffix("/__init__")
        for folder, package in (("harness/member", "fencepost_member"), ("harness", "fencepost")):
            if path == folder or path.startswith(f"{folder}/"):
                return f"{package}{path.removeprefix(folder)}".replace("/", ".")
        return f"fencepost/{path}".replace("/", ".")

    @cached_property
    def docstrings(self) -> list[ast.Constant]:
        """The docstrings of the file, of its classes and of its functions."""
        firsts = (node.body[0] for node in ast.walk(self.tree) if isinstance(node, DOCUMENTED) and node.body)
        texts = (first.value for first in firsts if isinstance(first, ast.Expr))
        return [text for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)]

    @cached_property
    def names(self) -> frozenset[str]:
        """What a docstring may name: identifiers, the file and its folders, and strings that are one word."""
        prose = {id(text) for text in self.docstrings}
        found = set(self.path.removesuffix(".py").split("/"))
        for node in ast.walk(self.tree):
            strings = (value for value in vars(node).values() if isinstance(value, str) and id(node) not in prose)
            for string in strings:
                if string.isidentifier() or not re.search(r"\s", string):
                    found |= {string, *re.findall(r"\w+", string)}
        return frozenset(found)

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and full name of everything imported, ``from a import b`` as ``a.b``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.lineno, f"{'.' * node.level}{node.module or ''}.{a.name}") for a in node.names)


Rule = Callable[[Source], Iterator[str]]


def imports_go_one_way(source: Source) -> Iterator[str]:
    """Nobody imports what is above it."""
    if source.part == "tests":
        return
    if source.part not in RANKS:
        yield f"{source.path}: found a part without a rank, use RANKS of tests/layout_rules.py to give it one"
        return
    for line, name in source.imports():
        part = part_of(name)
        if part and RANKS.index(part) > RANKS.index(source.part):
            lower = ", ".join(RANKS[: RANKS.index(source.part)])
            yield f"{source.path}:{line}: found import of {name}, use only {lower}"


def part_of(name: str) -> str:
    """The part that something imported belongs to; empty when it is none of ours."""
    top, _, rest = name.partition(".")
    if top == "fencepost":
        first = rest.partition(".")[0]
        return first if first in RANKS else "__init__"
    return top if top == "fencepost_member" else ""


def circles(sources: Iterable[Source]) -> list[str]:
    """Modules that import each other, also for types alone or inside of functions: one circle, or none."""
    modules = {source.module: source for source in sources if source.part != "tests"}
    graph = {name: {_module(target, modules) for _, target in one.imports()} - {name} for name, one in modules.items()}
    try:
        TopologicalSorter({name: found - {""} for name, found in graph.items()}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def names_of_two_classes(sources: Iterable[Source]) -> list[str]:
    """Public classes of the product that share a name and are not ``ALIKE``: who reads a name must know what it is."""
    homes: dict[str, list[str]] = {}
    for source in (source for source in sources if source.part != "tests"):
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in ALIKE:
                homes.setdefault(node.name, []).append(source.path)
    return [
        f"found the class {name} in {', '.join(paths)}: use another name" for name, paths in homes.items() if paths[1:]
    ]


def _module(target: str, modules: Mapping[str, Source]) -> str:
    while target and target not in modules:
        target = target.rpartition(".")[0]
    return target


def missing_names(sources: Iterable[Source], files: Iterable[str]) -> list[str]:
    """Names in docstrings of the product that are no identifier, module, file or string anywhere in it."""
    product = [source for source in sources if source.part != "tests"]
    known = {*NOT_SPELLED, *keyword.kwlist, *dir(builtins), *sys.stdlib_module_names, "fencepost", "fencepost_member"}
    known = known.union(*(source.names for source in product), *(re.findall(r"[\w-]+", file) for file in files))
    return [
        f"{source.path}:{text.lineno}: found ``{name}``, use a name that exists"
        for source in product
        for text in source.docstrings
        for name in NAMED.findall(str(text.value))
        if name not in known and not known.issuperset(name.split(".")) and not EXAMPLE.search(name)
    ]


def the_judged_do_not_import_the_specification(source: Source) -> Iterator[str]:
    """The kernel is compared with the oracle: neither may be made of the other. Both ask the tables."""
    for other, folders in {"oracle": ("kernel", "spark", "group_rules", "tables"), "kernel": ("oracle",)}.items():
        if source.path.startswith(tuple(f"checkers/{folder}/" for folder in folders)):
            for line, name in source.imports():
                if name.startswith(f"fencepost.checkers.{other}"):
                    yield f"{source.path}:{line}: found import of {name}, use checkers/tables/ for what both need"


def foreign(top: str) -> bool:
    """Whether a top-level package is a library: neither ours nor of Python."""
    return top not in sys.stdlib_module_names and top not in ("fencepost", "fencepost_member")


def libraries_stay_in_their_place(source: Source) -> Iterator[str]:
    """One module talks to a library; the rest of the code does not know it. The core needs no library at all."""
    for line, name in source.imports():
        top = name.split(".")[0]
        place = PLACES.get(top)
        if place and source.part != "tests" and not source.path.startswith(place):
            yield f"{source.path}:{line}: found import of {top}, use it in {place} alone"
        if top == "tests":
            yield f"{source.path}:{line}: found import of tests, use code that is installed"
        excused = OF_MEMBERS if source.part == "fencepost_member" else ("pytest",) if source.path in OF_PYTEST else ()
        bare = source.part in STDLIB_ONLY or source.path in OF_PYTEST
        if foreign(top) and bare and top not in (*excused, "tests"):
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
    functions_are_short,
)
