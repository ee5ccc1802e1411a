"""Installed from a wheel or from an sdist, Fencepost judges as it does here.

Each environment is empty except for Fencepost and the libraries that it declares, linked from this environment: a
library that is imported and not declared is missing there. It works in a folder that has folders named as those of the
repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

TOP = Path(__file__).parents[3]
PLACES = {  # of each package in the repository, and where it is installed; the first one that fits
    "harness/member": "fencepost_member",
    "harness": "fencepost",
    "checkers": "fencepost/checkers",
    "faults": "fencepost/faults",
    "docker/images": "fencepost/images",
    "workloads": "fencepost/workloads",
}
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_SHIPPED = {"__pycache__", "build", "dist", "runs", "tests"}
WHERE = "import fencepost, fencepost_member; print(fencepost.__file__, fencepost_member.__file__)"
VERSION = "from importlib import metadata; print(metadata.version('fencepost'))"
EVERY_MODULE = """
import fencepost, importlib, pkgutil
for module in pkgutil.walk_packages(fencepost.__path__, "fencepost."):
    if not module.name.endswith(".__main__"):
        importlib.import_module(module.name)
"""
ARCHIVE = "from fencepost.checkers.spark import executors; print(executors._archive().read_bytes().hex())"
BUILD = "import sys, setuptools.build_meta as backend; backend.build_{}(sys.argv[1])"

CHAOS_TEST = """
import warnings

import pytest

from fencepost import Group, Scenario, Topic, at
from fencepost.faults import Kill
from fencepost.targets import member
from fencepost.workloads import PollLoop

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kafka.net.selector import NetworkSelector
NetworkSelector.DEFAULT_CONFIG["slow_task_threshold_secs"] = 1e-9  # it warns of each step that takes longer

SCENARIO = Scenario(
    name="a member dies",
    topics=[Topic("orders", partitions=4, replication_factor=1)],
    brokers=1,
    group=Group(client="kafka-python", members=2, config={"session.timeout.ms": 6000}),
    workload=PollLoop(rate_hz=300),
    schedule=[at(1, Kill(), member(0), heal_after=1)],
    min_records=600,
)


@pytest.mark.chaos
def test_no_order_is_lost(chaos):
    chaos.run(SCENARIO).must_keep_its_promises()
"""


def in_the_repository() -> dict[str, Path]:
    """What belongs into an environment, by its place there."""
    found: dict[str, Path] = {}
    for folder, package in PLACES.items():
        for path in sorted((TOP / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.setdefault(str(path), Path(package, path.relative_to(TOP / folder)))
    return {str(installed): Path(path) for path, installed in found.items()}


def contents(files: Mapping[str, Path]) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in files.items()}


def required(requirements: Iterable[str], extras: Iterable[str] = ()) -> Iterator[metadata.Distribution]:
    """The distributions here that these requirements and, in their turn, theirs name; one may come several times."""
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": one}) for one in ("", *extras)):
            found = metadata.distribution(requirement.name)
            yield found
            yield from required(found.requires or (), requirement.extras)


def link(distributions: Iterable[metadata.Distribution], site: Path) -> None:
    """Let ``site`` have these distributions, and nothing else of where they are installed."""
    for found in distributions:
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))))


def build(what: str, source: Path, folder: Path) -> Path:
    """The ``wheel`` or ``sdist`` of ``source``, made in ``folder`` by the setuptools that are here."""
    folder.mkdir()
    made = [sys.executable, "-c", BUILD.format(what), folder]
    subprocess.run(made, cwd=source, check=True, stdout=subprocess.DEVNULL)
    (artefact,) = folder.iterdir()
    return artefact


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and the folder of a project."""

    home: Path
    project: Path

    @classmethod
    def make(cls, folder: Path) -> Environment:
        self = cls(folder / "venv", folder / "project")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.home], check=True)
        link(required(PROJECT["dependencies"]), self.site)
        for name in ("harness", "checkers", "faults", "workloads"):
            package = self.project / name / "__init__.py"
            package.parent.mkdir(parents=True)
            package.write_text("raise RuntimeError('this is somebody else')\n", encoding="utf-8")
        assert "No module named 'fencepost'" in self.python("-c", "import fencepost", code=1)
        return self

    @property
    def site(self) -> Path:
        (site,) = self.home.glob("lib/python*/site-packages")
        return site

    def pip(self, what: Path) -> None:
        """Install a wheel; its libraries are there."""
        place = ("--python", str(self.home / "bin" / "python"))
        how = ("--quiet", "--disable-pip-version-check", "--no-index")
        subprocess.run([sys.executable, "-m", "pip", *place, "install", *how, what], check=True)

    def python(self, *arguments: str, code: int = 0) -> str:
        return self.run("python", *arguments, code=code)

    def run(self, program: str, *arguments: str, code: int = 0) -> str:
        """What it says, in the folder of the project."""
        argv = [self.home / "bin" / program, *arguments]
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(argv, cwd=self.project, env=clean, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        return said

    def installed(self) -> dict[str, Path]:
        """All files of Fencepost, by their place."""
        tops = {package.split("/")[0] for package in PLACES.values()}
        found = [path for top in sorted(tops) for path in (self.site / top).rglob("*") if path.is_file()]
        return {str(path.relative_to(self.site)): path for path in found if "__pycache__" not in path.parts}

    def report(self) -> str:
        """That of the only run."""
        (report,) = (self.project / "runs").glob("*/report.html")
        return report.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy: a build leaves files. An earlier one has left a module that is no more."""
    copy = tmp_path_factory.mktemp("checkout") / "fencepost"
    shutil.copytree(TOP, copy, ignore=lambda _, names: [n for n in names if n in NOT_SHIPPED or n.startswith(".")])
    old = copy / "build" / "lib" / "fencepost" / "no_more.py"
    old.parent.mkdir(parents=True)
    old.touch()
    return copy


@pytest.fixture(scope="module")
def from_wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel of a checkout."""
    folder = tmp_path_factory.mktemp("from-wheel")
    environment = Environment.make(folder)
    environment.pip(build("wheel", checkout, folder / "dist"))
    return environment


@pytest.fixture(scope="module")
def from_sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel that is made of an sdist alone."""
    folder = tmp_path_factory.mktemp("from-sdist")
    shutil.unpack_archive(build("sdist", checkout, folder / "dist"), folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    environment = Environment.make(folder)
    environment.pip(build("wheel", source, folder / "wheel"))
    return environment


@pytest.fixture(params=["from_wheel", "from_sdist"])
def environment(request: pytest.FixtureRequest) -> Environment:
    found: Environment = request.getfixturevalue(request.param)
    return found


def test_all_files_of_the_repository_are_installed_and_nothing_else(environment: Environment) -> None:
    assert all(place.startswith(str(environment.site)) for place in environment.python("-c", WHERE).split())
    wanted, found = contents(in_the_repository()), contents(environment.installed())
    assert {"fencepost/scenario/builtin/demo.toml", "fencepost/reports/lint/group.py"} < set(wanted)
    assert set(found) == set(wanted)
    assert found == wanted


def test_the_commands_of_the_readme_work(environment: Environment) -> None:
    assert environment.python("-c", VERSION).strip() == PROJECT["version"]
    assert "Exit codes: 0 valid" in environment.run("fencepost", "--help")
    assert "slow_record_rebalanced" in environment.run("fencepost", "list", "scenarios")


def test_what_is_not_declared_is_missing(environment: Environment) -> None:
    assert "No module named 'hypothesis'" in environment.python("-c", "import hypothesis", code=1)
    environment.python("-c", EVERY_MODULE)


def test_executors_of_spark_are_given_all_modules_once(environment: Environment, tmp_path: Path) -> None:
    archive = tmp_path / "fencepost.zip"
    archive.write_bytes(bytes.fromhex(environment.python("-c", ARCHIVE)))
    with zipfile.ZipFile(archive) as file:
        shipped = file.namelist()
    assert sorted(shipped) == sorted(name for name in in_the_repository() if name.endswith(".py"))


@pytest.mark.cluster
@pytest.mark.spark
def test_the_demo_ends_with_a_verdict_and_a_report(from_wheel: Environment) -> None:
    assert "valid" in from_wheel.run("fencepost", "run", "demo")
    assert "<h1>demo</h1>" in from_wheel.report()


@pytest.mark.cluster
@pytest.mark.spark
def test_a_chaos_test_of_a_project_ends_with_a_verdict_and_a_report(from_sdist: Environment) -> None:
    (from_sdist.project / "test_orders.py").write_text(CHAOS_TEST, encoding="utf-8")
    said = from_sdist.python(
        "-m", "pytest", "--chaos", "-rA", "-W", "error", "-p", "no:cacheprovider", "test_orders.py"
    )
    assert "1 passed" in said
    assert "Captured" not in said  # nothing of libraries, which have much to say
    assert "warning" not in said
    assert "a member dies" in from_sdist.report()
