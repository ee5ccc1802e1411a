"""Which packages there are, and with which files: they are found, not listed. All else is in ``pyproject.toml``."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

PLACES = {
    "fencepost": "harness",
    "fencepost.checkers": "checkers",
    "fencepost.faults": "faults",
    "fencepost.images": "docker/images",
    "fencepost.workloads": "workloads",
    "fencepost_member": "harness/member",
}


class BuildAfresh(build_py):
    """What an earlier build left in a checkout is not shipped: it may hold modules that are no more."""

    def run(self) -> None:
        """Empty the folder, then build."""
        if not self.editable_mode:  # which has a new folder each time
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


def packages() -> Iterator[str]:
    """The packages: each place, and the folders below it that are not in a nearer place. Some hold data alone."""
    for package, place in PLACES.items():
        yield package
        nearer = [other for other in PLACES.values() if other.startswith(f"{place}/")]
        for name in find_namespace_packages(place, exclude=["*__pycache__"]):
            if not any(Path(place, *name.split(".")).is_relative_to(other) for other in nearer):
                yield f"{package}.{name}"


setup(
    cmdclass={"build_py": BuildAfresh},
    packages=sorted(packages()),
    package_dir=PLACES,
    include_package_data=False,
    package_data={"": ["*"]},
)
