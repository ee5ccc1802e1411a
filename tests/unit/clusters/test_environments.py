"""What members run on: Pythons are found, environments made once; what cannot be is a sentence with the way out."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fencepost.clusters import environments
from fencepost.errors import ProvisionError
from fencepost.interfaces.process import Environment
from fencepost.model.clients import Client

OURS = f"{sys.version_info.major}.{sys.version_info.minor}"
RELEASE = Client("confluent-kafka", "9.8.7")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """An empty cache, no package index, and no Python but ours."""
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    environments.pythons.cache_clear()
    yield tmp_path
    environments.pythons.cache_clear()


def python(path, version):
    """A Python of this version, as far as it tells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{f'echo {version}' if version else 'exit 127'}\n")
    path.chmod(0o755)


def wheel(folder, text="", tag="py3-none-any"):
    """A release of confluent-kafka that is this module."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"confluent_kafka-9.8.7-{tag}.whl", "w") as archive:
        info = "confluent_kafka-9.8.7.dist-info"
        archive.writestr("confluent_kafka.py", text)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: confluent-kafka\nVersion: 9.8.7\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")


def test_a_bare_client_runs_on_our_own_python():
    assert environments.interpreter(Environment()).python == sys.executable


def test_a_client_that_is_not_installed_here_wants_a_release(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ProvisionError, match=r"aiokafka is not installed with Fencepost: name a release"):
        environments.interpreter(Environment(Client("aiokafka")))


def test_the_path_goes_before_pyenv_of_which_the_latest_is_taken(tmp_path):
    python(tmp_path / "bin" / "python3.9", "")  # pyenv's, for a version that nobody chose
    python(tmp_path / "bin" / "python3.12", "3.12.1")
    for version in ("3.9.2", "3.9.18", "3.12.9", "3.7.16"):
        python(tmp_path / "pyenv" / "versions" / version / "bin" / f"python{version.rpartition('.')[0]}", version)
    assert environments.find("3.12") == ("3.12.1", tmp_path / "bin" / "python3.12")
    assert environments.find("3.12.9")[0] == "3.12.9"
    assert environments.find("3.9")[0] == "3.9.18"
    assert list(environments.pythons()) == ["3.12.1", "3.12.9", "3.9.18", "3.9.2"]
    for wanted in ("3.1", "3.10", "3.9.1"):
        with pytest.raises(ProvisionError, match=rf"no Python {wanted} for members: neither .* Found: 3.12.1, 3.12.9"):
            environments.find(wanted)


def test_an_environment_is_made_once_and_needs_no_network_afterwards(tmp_path, monkeypatch):
    wheel(tmp_path / "wheels")
    reported = []
    made = environments.interpreter(Environment(RELEASE), reported.append)
    python = ".".join(map(str, sys.version_info[:3]))
    assert reported == [f"creating an environment with confluent-kafka==9.8.7 on Python {python} (once)"]
    tell = "import confluent_kafka, sys; print(confluent_kafka.__file__, sys.prefix)"
    file, prefix = subprocess.run([made.python, "-c", tell], capture_output=True, text=True, check=True).stdout.split()
    assert Path(file).is_relative_to(prefix)
    assert Path(prefix).parent == tmp_path / "cache"
    (tmp_path / "wheels").rename(tmp_path / "gone")
    assert environments.interpreter(Environment(RELEASE), reported.append) == made
    assert len(reported) == 1
    assert environments.made() == [Path(prefix).name.removeprefix("member-")]


@pytest.mark.slow
def test_a_release_without_a_wheel_for_this_python_names_those_that_have_one(tmp_path, monkeypatch):
    wheel(tmp_path / "wheels", tag="cp39-none-any")
    for version in ("3.9.18", "3.10.13"):
        python(tmp_path / "bin" / f"python{version.rpartition('.')[0]}", version)
    with pytest.raises(ProvisionError) as caught:
        environments.interpreter(Environment(RELEASE))
    assert "confluent-kafka==9.8.7 cannot be installed: pip ended with exit code 1: ERROR: Could not find" in str(
        caught.value
    )
    assert str(caught.value).endswith("There are wheels for Python 3.9: name one as the group's python")
    assert environments.made() == []


@pytest.mark.slow
def test_a_release_that_nobody_has_is_told(tmp_path):
    with pytest.raises(
        ProvisionError, match="No Python on this machine has a wheel of it: is there a network, and such"
    ):
        environments.interpreter(Environment(RELEASE))


@pytest.mark.slow
def test_a_release_that_does_not_work_on_this_python_is_told_and_not_kept(tmp_path):
    wheel(tmp_path / "wheels", "import kafka.vendor.six.moves")
    with pytest.raises(
        ProvisionError, match=r"9.8.7 does not work on this Python: .*No module named 'kafka'.*an older"
    ):
        environments.interpreter(Environment(RELEASE))
    assert environments.made() == []
