"""A trial of a member's settings: ``python -m fencepost_member.trying CONFIG.json`` ends with 0 where its client takes
them, else with a sentence. Nobody is connected to.
"""

from __future__ import annotations

import sys
from typing import Sequence

from fencepost_member.adapters import try_settings
from fencepost_member.config import read_member
from fencepost_member.process import run


def main(argv: Sequence[str]) -> int:
    """Try them."""
    try_settings(read_member(argv[0]))
    return 0


if __name__ == "__main__":
    sys.exit(run(main, "usage: python -m fencepost_member.trying CONFIG.json"))
