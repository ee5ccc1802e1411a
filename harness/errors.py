"""The exceptions that Fencepost raises: what each means and what to do about it.

All of them carry a message made of sentences: what was expected, what came, and the way out. What only one module
raises and catches (``fencepost.evidence.records.DamagedDumpError``) stands there, below ``FencepostError`` as well; the
member side, which runs without the rest, has its own ``ConfigError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class FencepostError(Exception):
    """Base of all errors that are meant for people; anything else is a defect of the harness.

    Attributes:
        each: the errors that this one lists; itself alone where it is about one thing.
    """

    @property
    def each(self) -> tuple[FencepostError, ...]:
        """See above."""
        return self._listed or (self,)

    _listed: tuple[FencepostError, ...] = ()


class ScenarioError(FencepostError):
    """The scenario itself is wrong: an unknown option, a bad value, a missing part. Correct the scenario."""


class PlanError(ScenarioError):
    """The schedule cannot do what it says (healing time on a fault that has nothing to heal, a pause that
    cannot reach its expectation, an ability that the back-end lacks). Raised before anything starts."""


class ProvisionError(FencepostError):
    """A part that a run needs is missing and could not be fetched. ``fencepost doctor`` lists the remedies."""


class ClusterError(FencepostError):
    """A broker, the controller or a proxy did not start, stop or answer as it should."""


class NotShown(ClusterError):  # noqa: N818
    """A part of the evidence that this cluster does not let anybody read. What rests on it is judged as unknown."""


class MemberError(FencepostError):
    """A member or producer process did not start, or ended when it should not have."""


class FaultError(FencepostError):
    """A fault could not be injected or undone. The run stays unknown; the evidence tells which step."""


class WaitTimeout(FencepostError):  # noqa: N818
    """Something awaited did not come within its bound; the message tells what, the state now, and a hint."""


class RunFolderError(FencepostError):
    """A run folder is missing, damaged or of a format that this version does not read."""


class ReportError(FencepostError):
    """A report could not be drawn or written. The verdict is stored: ``fencepost report`` draws it again."""


class BrokenPromises(AssertionError):  # noqa: N818
    """The group broke a promise: the verdict is ``invalid``. No retry washes this away."""


class UnknownVerdict(FencepostError):  # noqa: N818
    """The run could not be judged (a fault without a witness, too few facts, a stalled host). A retry may help."""


def refuse(errors: Iterable[FencepostError]) -> None:
    """Raise the one error; of several, one of the first one's class that lists each of them once; else do nothing."""
    found = tuple({str(one): one for error in errors for one in error.each}.values())
    if len(found) > 1:
        combined = type(found[0])("\n- ".join([f"{len(found)} things are wrong:", *map(str, found)]))
        combined._listed = found
        raise combined
    if found:
        raise found[0]


class Complaints:
    """Gathers what is wrong with what somebody asked for, so that one error lists all of it.

    Attributes:
        found: the errors, in the order in which they were found.
    """

    def __init__(self) -> None:
        self.found: list[FencepostError] = []

    @contextmanager
    def gather(self, *kinds: type[FencepostError]) -> Iterator[None]:
        """Keep an error of these kinds that is raised inside, and go on after the block."""
        try:
            yield
        except kinds as error:
            self.found.append(error)

    def each(self, call: Callable[[Any], Any], items: Iterable[Any], *kinds: type[FencepostError]) -> list[Any]:
        """What ``call`` makes of each item, without those for which it raises an error of these kinds."""
        made = []
        for item in items:
            with self.gather(*kinds):
                made.append(call(item))
        return made

    def refuse(self) -> None:
        """See ``refuse``."""
        refuse(self.found)
