"""Parses one line of a program's output and checks it against the schema. Pure.

Only the keywords of JSON Schema that ``line.schema.json`` uses are implemented, because the member side has nothing but
the standard library. A line that passes here passes every JSON Schema validator.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional

from fencepost_member.ownership import Tp

SCHEMA: Mapping[str, Any] = json.loads(Path(__file__).with_name("line.schema.json").read_text(encoding="utf-8"))
NAMES = tuple(one["$ref"].rpartition("/")[2] for one in SCHEMA["oneOf"])
TYPES = {"string": str, "object": dict, "array": list, "boolean": bool, "integer": int, "null": type(None)}

Line = Dict[str, Any]


class LineError(Exception):
    """A line is invalid or cannot be true; the message says why."""


def parse(text: bytes) -> Optional[Line]:
    """The line as an object; None for ordinary output: anything but an object with ``name`` and ``timestamp``.

    Raises:
        LineError: the line has a name and a timestamp and does not conform to the schema.
    """
    if not text.startswith(b"{") or b'"name"' not in text or b'"timestamp"' not in text:
        return None
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LineError("it has a name and a timestamp but is not valid JSON: %s" % error) from error
    if not isinstance(line, dict) or "name" not in line or "timestamp" not in line:
        return None
    name = line["name"]
    if name not in NAMES:
        raise LineError("name is %s, it must be one of %s" % (_shown(name), ", ".join(NAMES)))
    fault = next(faults(line, SCHEMA["$defs"][name], ""), None)
    if fault:
        raise LineError("%s: %s" % (name, fault))
    return line


def faults(value: Any, shape: Mapping[str, Any], where: str) -> Iterator[str]:
    """The violations of a part of the schema in a value, as sentences; ``where`` is the value's path in the line."""
    if "$ref" in shape:
        shape = SCHEMA["$defs"][shape["$ref"].rpartition("/")[2]]
    types: Any = shape.get("type")
    if types is not None and not any(_is(value, one) for one in ([types] if isinstance(types, str) else types)):
        yield "%s is %s, it must be of type %s" % (where or "it", _shown(value), types)
        return
    if value not in shape.get("enum", (value,)) or value != shape.get("const", value):
        yield "%s is %s, it must be one of %s" % (where, _shown(value), shape.get("enum") or shape["const"])
    if "minimum" in shape and value < shape["minimum"]:
        yield "%s is %s, it must be at least %d" % (where, _shown(value), shape["minimum"])
    if isinstance(value, dict):
        yield from ("%s has no %s" % (where or "it", name) for name in shape.get("required", ()) if name not in value)
        for name, inner in shape.get("properties", {}).items():
            if name in value:
                yield from faults(value[name], inner, ("%s.%s" % (where, name)).lstrip("."))
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from faults(item, shape.get("items", {}), "%s[%d]" % (where, place))


def tps(line: Line) -> List[Tp]:
    """The partitions of a line."""
    return [(p["topic"], p["partition"]) for p in line["partitions"]]


def offsets_of(line: Line) -> Dict[Tp, int]:
    """The offsets of a line."""
    return {(p["topic"], p["partition"]): p["offset"] for p in line["offsets"]}


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, TYPES[kind]) and (kind != "integer" or not isinstance(value, bool))


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:60] + "..."
