"""How functions of the user's are named in a workload."""

from __future__ import annotations

import re

from fencepost.errors import ScenarioError

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def check_function(option: str, name: str) -> None:
    """Raises ScenarioError when it is neither empty nor ``module:function``."""
    if name and not _FUNCTION.fullmatch(name):
        raise ScenarioError(f"{option} is {name!r}; it must be of the form module:function")
