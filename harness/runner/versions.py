"""The versions of all software of a run, for ``scenario.json`` and the report."""

from __future__ import annotations

import platform
from importlib import metadata

from fencepost.clusters.kafka import provision
from fencepost.model import clients

_LIBRARIES = tuple(name for name, library in clients.KNOWN.items() if library.imported)
_PACKAGES = ("fencepost", *_LIBRARIES, "psycopg", "pyspark", "pyarrow", "numpy", "toxiproxy-python")
_PACKAGES += ("docker", "testcontainers")


def versions() -> dict[str, str]:
    """Name -> version; packages that are not installed are left out.

    Raises:
        ProvisionError: there is no Java, or one that is too old.
    """
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    found["java"] = provision.java().description
    return found
