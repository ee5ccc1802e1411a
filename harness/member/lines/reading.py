"""From a line of a program's output to what it tells. Pure.

The schema is read here by a few keywords of JSON Schema alone, because the member's side has the standard library only;
who conforms to it there conforms to it for every validator.
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
    """A line that tells something cannot be believed; the message says why."""


def parse(text: bytes) -> Optional[Line]:
    """What a line tells; None for ordinary output, which is all that is no object with ``name`` and ``timestamp``.

    Raises:
        LineError: it is meant to tell something, and does not have its form.
    """
    if not text.startswith(b"{") or b'"name"' not in text or b'"timestamp"' not in text:
        return None
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LineError("it has a name and a timestamp, and is no JSON: %s" % error) from error
    if not isinstance(line, dict) or "name" not in line or "timestamp" not in line:
        return None
    name = line["name"]
    if name not in NAMES:
        raise LineError("found the name %s; there are %s" % (_shown(name), ", ".join(NAMES)))
    fault = next(faults(line, SCHEMA["$defs"][name], ""), None)
    if fault:
        raise LineError("%s: %s" % (name, fault))
    return line


def faults(value: Any, shape: Mapping[str, Any], where: str) -> Iterator[str]:
    """How a value differs from a part of the schema, as sentences."""
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
        yield from ("%s lacks %s" % (where or "it", name) for name in shape.get("required", ()) if name not in value)
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
