"""The exceptions that Fencepost raises, with their meanings and remedies.

Each message has what was expected, what was found, and what to do. An exception that only one module raises and
catches (``DamagedDumpError`` of the dump parser) is defined in that module, as a ``FencepostError`` too.
The member package, which runs without the rest, has its own ``ConfigError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class FencepostError(Exception):
    """Base of all errors that are shown to users; any other exception is a defect of the harness.

    Attributes:
        each: the errors that this one lists; only itself if it is not a list.
    """

    @property
    def each(self) -> tuple[FencepostError, ...]:
        """See above."""
        return self._listed or (self,)

    _listed: tuple[FencepostError, ...] = ()


class ScenarioError(FencepostError):
    """The scenario itself is wrong: an unknown option, a bad value, a missing part. Correct the scenario."""


class PlanError(ScenarioError):
    """The schedule cannot be performed (a healing time on a fault that has nothing to heal, a pause that cannot reach
    its expectation, a capability that the back-end does not have). Raised before anything starts."""


class ProvisionError(FencepostError):
    """A part that a run needs is missing and could not be fetched. ``fencepost doctor`` lists the remedies."""


class ClusterError(FencepostError):
    """A broker, the controller or a proxy did not start, stop or answer as expected."""


class NotAuthorized(ClusterError):  # noqa: N818
    """Brokers refused a request because this user does not have a right."""


class NotShown(ClusterError):  # noqa: N818
    """This cluster does not allow reading a part of the evidence."""


class NotRead(NotShown):
    """A part of the evidence that this cluster may show could not be read: it is missing from the history."""


class MemberError(FencepostError):
    """A member or producer process did not start, or ended unexpectedly."""


class FaultError(FencepostError):
    """A fault could not be injected or undone. The run stays unknown; the evidence names the step."""


class WaitTimeout(FencepostError):  # noqa: N818
    """A wait exceeded its time limit; the message has what was awaited, the current state, and a hint."""


class RunFolderError(FencepostError):
    """A run folder is missing, damaged or of a format that this version does not read."""


class ReportError(FencepostError):
    """A report could not be drawn or written. The verdict is stored: ``fencepost report`` draws it again."""


class BrokenPromises(AssertionError):  # noqa: N818
    """The group broke a promise: the verdict is ``invalid``. A retry does not disprove it."""


class UnknownVerdict(FencepostError):  # noqa: N818
    """The run could not be judged (an unproven fault, too little evidence, a stalled host). A retry may help."""


def refuse(errors: Iterable[FencepostError]) -> None:
    """Raise the error if there is one. Raise several as one error, of the class of the first, that lists each once."""
    found = tuple({str(one): one for error in errors for one in error.each}.values())
    if len(found) > 1:
        combined = type(found[0])("\n- ".join([f"{len(found)} things are wrong:", *map(str, found)]))
        combined._listed = found
        raise combined
    if found:
        raise found[0]


class Complaints:
    """Gathers everything that is wrong with a request, so that one error lists all of it.

    Attributes:
        found: the errors, in the order in which they were found.
    """

    def __init__(self) -> None:
        self.found: list[FencepostError] = []

    @contextmanager
    def gather(self, *kinds: type[FencepostError]) -> Iterator[None]:
        """Catch and keep an error of these kinds that the block raises."""
        try:
            yield
        except kinds as error:
            self.found.append(error)

    def each(self, call: Callable[[Any], Any], items: Iterable[Any], *kinds: type[FencepostError]) -> list[Any]:
        """The results of ``call`` for the items; an item for which it raises an error of these kinds has none."""
        made = []
        for item in items:
            with self.gather(*kinds):
                made.append(call(item))
        return made

    def refuse(self) -> None:
        """See ``refuse``."""
        refuse(self.found)
