"""The exceptions that Fencepost raises: what each means and what to do about it.

All of them carry a message made of sentences: what was expected, what came, and the way out. What only one module
raises and catches (``fencepost.evidence.records.DamagedDumpError``) stands there, below ``FencepostError`` as well; the
member side, which runs without the rest, has its own ``ConfigError``.
"""

from __future__ import annotations


class FencepostError(Exception):
    """Base of all errors that are meant for people; anything else is a defect of the harness."""


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
