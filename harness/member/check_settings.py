"""Checks a member's client settings: ``python -m fencepost_member.check_settings CONFIG.json`` exits with 0 if the
client accepts them, and otherwise prints the reason. It connects to no broker.
"""

from __future__ import annotations

import sys
from typing import Sequence

from fencepost_member.adapters import try_settings
from fencepost_member.config import read_member
from fencepost_member.process import run


def main(argv: Sequence[str]) -> int:
    """Check the settings; returns the exit code. Raises ConfigError when the client refuses them."""
    try_settings(read_member(argv[0]))
    return 0


if __name__ == "__main__":
    sys.exit(run(main, "usage: python -m fencepost_member.check_settings CONFIG.json"))
