"""A member process: ``python -m fencepost_member CONFIG.json``. SIGTERM and SIGINT ask for a clean end.

See ``fencepost_member.process`` for the exit codes.
"""

from __future__ import annotations

import sys
from typing import Sequence

from fencepost_member.config import read_member
from fencepost_member.loop import MemberLoop
from fencepost_member.process import GAVE_UP, ReloadSwitch, StallSwitch, open_history, run, stop_on_signals


def main(argv: Sequence[str]) -> int:
    """Run one member until it ends; returns its exit code."""
    config = read_member(argv[0])
    stop, stall, reload = stop_on_signals(), StallSwitch(), ReloadSwitch(lambda: read_member(argv[0]))
    stall.listen()
    reload.listen()
    events, recorder = open_history(config.run, config.actor)
    fatal = MemberLoop(config, recorder.lane(), events, stop, stall, reload).run()
    recorder.close()
    if fatal:
        print("the client reported a fatal error: %s" % fatal, file=sys.stderr)
    return GAVE_UP if fatal else 0


if __name__ == "__main__":
    sys.exit(run(main, "usage: python -m fencepost_member CONFIG.json"))
