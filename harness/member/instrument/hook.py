"""The import hook: it instruments a client library after it was loaded and before the program gets it."""

from __future__ import annotations

import importlib
import sys
from typing import Any

# Module of a library that defines its client classes -> our instrument for it, and a class that the module must have:
# another package of the same name is not instrumented.
INSTRUMENTS = {
    "confluent_kafka.cimpl": ("fencepost_member.instrument.confluent_kafka", "Consumer"),
    "confluent_kafka.aio._AIOConsumer": ("fencepost_member.instrument.confluent_aio", "AIOConsumer"),
    "confluent_kafka.experimental.aio._AIOConsumer": ("fencepost_member.instrument.confluent_aio", "AIOConsumer"),
    "kafka": ("fencepost_member.instrument.kafka_python", "KafkaConsumer"),
    "aiokafka": ("fencepost_member.instrument.aiokafka", "AIOKafkaConsumer"),
}


class Finder:
    """Finds the modules in ``INSTRUMENTS`` by the other finders, and wraps their loaders."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """See ``importlib.abc.MetaPathFinder``."""
        if name not in INSTRUMENTS:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec: Any = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader, *INSTRUMENTS[name])
        return spec


class Loader:
    """Runs the library's own loader and then the instrument.

    Raises ImportError when the library cannot be instrumented.
    """

    def __init__(self, loader: Any, instrument: str, has: str) -> None:
        """``instrument`` names a module with ``instrument(library)``; ``has``: a class that the library must have."""
        self._loader, self._instrument, self._has = loader, instrument, has

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        """See ``importlib.abc.Loader``."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """See ``importlib.abc.Loader``."""
        self._loader.exec_module(module)
        if not hasattr(module, self._has):
            return
        try:
            importlib.import_module(self._instrument).instrument(module)
        except Exception as error:
            print("fencepost: %s cannot be instrumented: %r" % (module.__name__, error), file=sys.stderr)
            raise ImportError("fencepost cannot instrument %s" % module.__name__, name=module.__name__) from error


def install() -> None:
    """Install the hook. May be called twice."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
