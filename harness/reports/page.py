"""What all pages share: the environment of their templates, and the style and script that are part of each page."""

from __future__ import annotations

import base64
import hashlib
import shlex
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fencepost.reports import formatting
from fencepost.reports.glossary import meaning, remedy


@cache
def environment() -> Environment:
    """The environment of the templates, with the filters that they use. It keeps the compiled templates."""
    found = Environment(
        loader=PackageLoader("fencepost.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        number=formatting.number,
        plain=formatting.plain,
        span=formatting.span,
        plural=formatting.plural,
        meaning=meaning,
        remedy=remedy,
        short=formatting.shortened,
        quote=shlex.quote,
    )
    return found


def assets(environment: Environment) -> dict[str, Any]:
    """Style and script of a page, with their hashes for its content security policy."""
    found: dict[str, Any] = {}
    for name, file in (("style", "report.css"), ("script", "report.js")):
        assert environment.loader is not None
        text = environment.loader.get_source(environment, file)[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        found[name], found[f"{name}_hash"] = Markup(text), f"sha256-{digest}"
    return found
