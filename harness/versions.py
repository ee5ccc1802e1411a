"""The versions of everything that took part, for ``scenario.json`` and the report."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata

_PACKAGES = ("fencepost", "confluent-kafka", "kafka-python", "pyspark", "pyarrow", "numpy", "toxiproxy-python")


def versions() -> dict[str, str]:
    """Name to version; what is not installed is left out."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=30, check=False)
    found["java"] = (java.stderr or java.stdout).partition("\n")[0]
    return found
