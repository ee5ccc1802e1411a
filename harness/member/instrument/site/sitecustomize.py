"""Imported by Python before a user's program: watches for client libraries, then runs the site's own sitecustomize."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent


def watch() -> None:
    """Install the import hook if this process belongs to a run."""
    if "FENCEPOST_MEMBER" not in os.environ:
        return
    try:
        from fencepost_member.instrument import hook
    except Exception as error:
        print("fencepost: this program cannot be recorded, so it ends here: %s" % error, file=sys.stderr)
        raise SystemExit(2) from error  # without the hook it would use the addresses in its own configuration
    hook.install()


def go_on() -> None:
    """Import the environment's own sitecustomize, if there is one, in place of this module."""
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


watch()
go_on()
