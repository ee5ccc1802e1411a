"""Calls the user's function that returns the effects of a program: ``python -m fencepost_member.effects``.

It is a separate process, which can be killed whatever the function does. Arguments: the function, and the file to
write, with one JSON value per line; without a file it only checks that the function exists. The settings for a client
of the cluster are in the environment, for a function that reads a topic.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Sequence

from fencepost_member.config import ConfigError
from fencepost_member.user_functions import effects_of, error_line

SETTINGS = "FENCEPOST_CLIENT_SETTINGS"


def named(effect: Any) -> Any:
    """An effect as a JSON value: its record's topic, partition and offset, or the ``seq`` of its payload.

    Raises:
        TypeError: the effect is neither.
    """
    if _is_number(effect):
        return effect
    parts = list(effect) if isinstance(effect, (tuple, list)) else []
    if len(parts) == 3 and isinstance(parts[0], str) and all(map(_is_number, parts[1:])):
        return parts
    raise TypeError("expected an effect (topic, partition, offset) or the seq of a payload, found %r" % (effect,))


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def main(arguments: Sequence[str]) -> int:
    """Call the function and write the effects; returns the exit code."""
    name, *into = arguments
    sys.path.insert(0, str(Path.cwd()))
    try:
        function = effects_of(name)
        if into:
            effects = function(json.loads(os.environ.pop(SETTINGS, "{}")))
            with Path(into[0]).open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(named(effect)) + "\n" for effect in effects)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:  # whatever the user's code raises
        print("the function of effects %s failed: %s" % (name, error_line(error)), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
