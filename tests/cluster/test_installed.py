"""Installed as the README says, from a checkout or from an sdist, Fencepost judges as it does here.

Each environment has the libraries of this one, and of Fencepost only what was installed into it; it works in a folder
that has folders named as those of the repository.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PLACES = {  # of each package in the repository, and where it is installed; the first one that fits
    "harness/member": "fencepost_member",
    "harness": "fencepost",
    "checkers": "fencepost/checkers",
    "faults": "fencepost/faults",
    "docker/images": "fencepost/images",
    "workloads": "fencepost/workloads",
}
PAGES = {".md", ".png"}  # are for readers of the repository
NOT_SHIPPED = {"__pycache__", "build", "dist", "runs", "tests"}
WHERE = "import fencepost, fencepost_member; print(fencepost.__file__, fencepost_member.__file__)"
ARCHIVE = "from fencepost.checkers.spark import executors; print(executors._archive().read_bytes().hex())"
QUICK = ("--set", "min_records=800")

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
            if path.is_file() and path.suffix not in PAGES and "__pycache__" not in path.parts:
                found.setdefault(str(path), Path(package, path.relative_to(TOP / folder)))
    return {str(installed): Path(path) for path, installed in found.items()}


def contents(files: Mapping[str, Path]) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in files.items()}


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and the folder of a project."""

    home: Path
    project: Path

    @classmethod
    def make(cls, folder: Path) -> Environment:
        self = cls(folder / "venv", folder / "project")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.home], check=True)
        # Libraries are found there, but no .pth file is read: nothing leads to this checkout.
        (self.site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
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
        """Install it, with no other setuptools than that of the libraries."""
        place = ("--python", str(self.home / "bin" / "python"))
        how = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation")
        subprocess.run([sys.executable, "-m", "pip", *place, "install", *how, what], check=True)

    def python(self, *arguments: str, code: int = 0) -> str:
        return self.run("python", *arguments, code=code)

    def run(self, program: str, *arguments: str, code: int = 0) -> str:
        """What it says, in the folder of the project."""
        argv = [self.home / "bin" / program, *arguments]
        done = subprocess.run(argv, cwd=self.project, capture_output=True, text=True, check=False)
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
def from_checkout(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """By way of a wheel."""
    environment = Environment.make(tmp_path_factory.mktemp("from-checkout"))
    environment.pip(checkout)
    return environment


@pytest.fixture(scope="module")
def from_sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """By way of an sdist, and a wheel that is made of it."""
    folder = tmp_path_factory.mktemp("from-sdist")
    build = "import sys, setuptools.build_meta as backend; backend.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, folder], cwd=checkout, check=True, stdout=subprocess.DEVNULL)
    (sdist,) = folder.glob("*.tar.gz")
    environment = Environment.make(folder)
    environment.pip(sdist)
    return environment


@pytest.fixture(params=["from_checkout", "from_sdist"])
def environment(request: pytest.FixtureRequest) -> Environment:
    found: Environment = request.getfixturevalue(request.param)
    return found


def test_all_files_of_the_repository_are_installed_and_nothing_else(environment: Environment) -> None:
    assert all(place.startswith(str(environment.site)) for place in environment.python("-c", WHERE).split())
    wanted, found = contents(in_the_repository()), contents(environment.installed())
    assert {"fencepost/scenario/builtin/demo.toml", "fencepost/reports/advice/group.py"} < set(wanted)
    assert set(found) == set(wanted)
    assert found == wanted


def test_executors_of_spark_are_given_all_modules_once(environment: Environment, tmp_path: Path) -> None:
    archive = tmp_path / "fencepost.zip"
    archive.write_bytes(bytes.fromhex(environment.python("-c", ARCHIVE)))
    with zipfile.ZipFile(archive) as file:
        shipped = file.namelist()
    assert sorted(shipped) == sorted(name for name in in_the_repository() if name.endswith(".py"))


@pytest.mark.cluster
@pytest.mark.spark
def test_a_scenario_from_the_command_line_ends_with_a_verdict_and_a_report(from_checkout: Environment) -> None:
    assert "valid" in from_checkout.run("fencepost", "run", "commit_after_processing", *QUICK)
    assert "commit after processing" in from_checkout.report()


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
