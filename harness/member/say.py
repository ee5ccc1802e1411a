"""The former name of ``fencepost_member.api``, by which programs may still import it."""

import warnings

from fencepost_member.api import processed

__all__ = ["processed"]

warnings.warn("fencepost_member.say is now called fencepost_member.api: use the new name", FutureWarning, stacklevel=2)
