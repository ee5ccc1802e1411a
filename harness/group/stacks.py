"""Where a Python process is, from the stacks that it printed into its log; see ``fencepost_member.stacks``. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$")
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$')
_LIBRARIES = re.compile(r"/lib(?:32|64)?/(?:python|pypy)[\d.]+t?/|/(?:site|dist)-packages/|^<frozen ")
_INSTRUMENT = "/fencepost_member/"


class Frame(NamedTuple):
    """A line of a function that is being executed."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file.rpartition('/')[2]}, line {self.line}, in {self.function}"


def threads(text: str) -> list[list[Frame]]:
    """The frames of each thread in a print of ``faulthandler``, the innermost first; other lines are left out."""
    found: list[list[Frame]] = []
    for line in text.splitlines():
        if _THREAD.match(line):
            found.append([])
        elif found and (frame := _FRAME.match(line)):
            found[-1].append(Frame(frame["file"], int(frame["line"]), frame["function"]))
    return found


def complete(text: str) -> bool:
    """Whether the main thread is there, whose outermost frame is a module."""
    return any(_is_main(frames) for frames in threads(text))


def place(text: str) -> str:
    """Where the main thread is: its innermost frame in the program itself; empty: it is not among the stacks.

    If it is nowhere in a program of the user's, the innermost frame that is in no library.
    """
    frames: Sequence[Frame] = next(filter(_is_main, threads(text)), [])
    ours = [frame for frame in frames if not _LIBRARIES.search(frame.file)] or [*frames]
    own = (frame for frame in ours if _INSTRUMENT not in frame.file)
    return str(next(own, ours[0] if ours else ""))


def _is_main(frames: Sequence[Frame]) -> bool:
    """``python -m`` starts a program from ``runpy``."""
    return bool(frames) and frames[-1].function in ("<module>", "_run_module_as_main")
