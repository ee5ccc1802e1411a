"""The member side runs on Python 3.8 and imports the standard library and the client, nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fencepost_member

FILES = sorted(Path(fencepost_member.__file__).parent.rglob("*.py"))
GENERIC = {"dict", "list", "set", "frozenset", "tuple", "type", "Counter", "deque", "defaultdict", "OrderedDict"}
NEWER_METHODS = {"removeprefix", "removesuffix", "bit_count", "is_relative_to", "with_stem", "readlink", "hardlink_to"}
NEWER_ARGUMENTS = {"slots", "kw_only", "strict", "root_dir", "encoding_errors"}
# What the member side imports of the standard library; all of it is there in 3.8.
KNOWN = {
    "__future__",
    "asyncio",
    "base64",
    "collections",
    "concurrent",
    "contextlib",
    "contextvars",
    "dataclasses",
    "errno",
    "faulthandler",
    "fcntl",
    "functools",
    "hashlib",
    "http",
    "importlib",
    "inspect",
    "itertools",
    "json",
    "math",
    "mmap",
    "os",
    "pathlib",
    "platform",
    "queue",
    "random",
    "re",
    "signal",
    "sqlite3",
    "ssl",
    "struct",
    "sys",
    "threading",
    "time",
    "types",
    "urllib",
    "enum",
    "typing",
    "warnings",
    "weakref",
}
# Only these modules import a library: by the name of the file, or of its folder.
LIBRARIES = {
    "confluent": {"confluent_kafka"},
    "confluent_kafka": {"confluent_kafka"},
    "confluent_recorder": {"confluent_kafka"},
    "producer": {"confluent_kafka"},
    "producer_transactions": {"confluent_kafka"},
    "kafka_python": {"kafka"},
    "kafka_python_settings": {"kafka"},
    "aiokafka": {"aiokafka"},
    "databases": {"psycopg"},
}
NEWER_NAMES = {"functools.cache", "itertools.pairwise", "itertools.batched", "typing.Self", "typing.Annotated"}
NEWER_NAMES |= {"typing.ParamSpec", "typing.TypeAlias", "typing.NotRequired", "typing.assert_never", "typing.override"}


def newer_than_3_8(text: str) -> list[str]:
    """What of a module's source would fail on Python 3.8."""
    try:
        tree = ast.parse(text, feature_version=(3, 8))
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    annotated = any(isinstance(n, (ast.AnnAssign, ast.FunctionDef)) for n in ast.walk(tree))
    if annotated and not any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in tree.body):
        return ["no `from __future__ import annotations`"]
    found = []
    for node in ast.walk(_without_annotations(tree)):
        if isinstance(node, ast.Match):
            found.append("match")
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in GENERIC:
            found.append(ast.unparse(node))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and "None" in ast.unparse(node):
            found.append(ast.unparse(node))
        if isinstance(node, ast.Attribute) and node.attr in NEWER_METHODS:
            found.append(ast.unparse(node))
        if isinstance(node, ast.keyword) and node.arg in NEWER_ARGUMENTS:
            found.append(f"{node.arg}=")
        found += [name for name in _imports(node) if name in NEWER_NAMES]
    return found


def _without_annotations(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                setattr(node, name, None if name == "returns" else ast.Constant(""))
    return tree


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_the_member_side_is_written_for_python_3_8(file):
    assert newer_than_3_8(file.read_text()) == []


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_the_member_side_imports_the_standard_library_and_a_client_or_driver_alone(file):
    imported = {name.partition(".")[0] for node in ast.walk(ast.parse(file.read_text())) for name in _imports(node)}
    library = LIBRARIES.get(file.stem, set()) | LIBRARIES.get(file.parent.name, set())
    assert imported - {*KNOWN, "fencepost_member"} - library == set()


@pytest.mark.parametrize(
    "line",
    [
        "match x:\n    case 1: pass",
        "Tp = tuple[str, int]",
        "Maybe = int | None",
        "x = 'a'.removeprefix('a')",
        "zip(a, b, strict=True)",
        "@dataclass(slots=True)\nclass X: pass",
        "from functools import cache",
    ],
)
def test_what_is_newer_is_noticed(line):
    assert newer_than_3_8("from __future__ import annotations\n" + line)
    assert newer_than_3_8("x: int = 1")
