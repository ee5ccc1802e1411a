"""Names that users may have written and that are called otherwise now. Each keeps working and warns with the new name.

``FORMER`` lists all of them. Whoever reads a name that users write asks ``current``; a package that exports names takes
``attribute`` as its ``__getattr__``; environment variables are read by ``variable``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

# Where it is written -> the former name -> the present one. Names that a package exports are under the package.
# ``fencepost_member`` runs without this package: its former modules are files that warn when they are imported.
FORMER: Mapping[str, Mapping[str, str]] = {
    "environment": {"FENCEPOST_PLACES": "FENCEPOST_MAX_RUNS"},
    "fencepost": {"Members": "MemberSpec"},
    "module": {"fencepost_member.say": "fencepost_member.api"},
}


def current(place: str, name: str) -> str:
    """The present name of what ``name`` is in a place of ``FORMER``; a former name gives a ``FutureWarning``, too.

    That category is for the users of programs, and shown by default: they wrote the name.
    """
    now = FORMER[place].get(name, name)
    if now != name:
        warnings.warn(f"{name} ({place}) is now called {now}: use the new name", FutureWarning, stacklevel=3)
    return now


def attribute(package: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: what it exports, by its former names."""

    def find(name: str) -> Any:
        if name not in FORMER[package]:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(sys.modules[package], current(package, name))

    return find


def variable(environment: Mapping[str, str], name: str) -> str | None:
    """The value of an environment variable, by its present name or else by a former one; None: it is not set."""
    former = [old for old, now in FORMER["environment"].items() if now == name and old in environment]
    if name in environment or not former:
        return environment.get(name)
    current("environment", former[0])
    return environment[former[0]]
