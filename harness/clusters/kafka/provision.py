"""Provides the programs that a run needs: Java must be installed, Kafka is found or fetched once.

Kafka is a distribution named by ``KAFKA_HOME``, else the jars in the cache. They are fetched by the resolver that
PySpark contains (Apache Ivy), or by Maven where that fails and ``mvn`` is installed (it knows a company's mirrors), and
every jar must have the SHA-256 that this package pins. Kafka 3 contains log4j 1, which writes no timestamps that our
readers understand: log4j 2 replaces it, behind the same interfaces. For Toxiproxy see ``toxiproxy``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache as once
from importlib import resources
from pathlib import Path
from xml.sax.saxutils import quoteattr

from fencepost.clusters import cache
from fencepost.clusters.cache import ProgressCallback, quiet
from fencepost.errors import ClusterError, ProvisionError, WaitTimeout
from fencepost.model.settings import KAFKAS, of_kafka_3
from fencepost.processes.owner import ProcessOwner, wait_ended

JAVA_MINIMUM = 17
FETCH_S = 900.0
# Finds the line in the output of a failed fetch that gives the reason.
ANNOUNCEMENT = re.compile(
    r"unknown host|unresolved|unreachable|could not|cannot|refused|denied|no space|timed out", re.I
)
# A binding of log4j is needed, or the brokers log nothing; its version is the one that Kafka's tools depend on.
LOG4J, LOG4J_VERSION = "org.apache.logging.log4j", "2.25.4"
# Missing in Kafka 3: log4j 1's interface on top of log4j 2, which brokers call, and the reader for our log4j2.yaml.
OF_KAFKA_3 = (
    (LOG4J, "log4j-1.2-api", LOG4J_VERSION),
    ("com.fasterxml.jackson.dataformat", "jackson-dataformat-yaml", "2.16.2"),
)
LOG4J_1 = (("org.slf4j", "slf4j-reload4j"), ("ch.qos.reload4j", "reload4j"))  # excluded as dependencies


@dataclass(frozen=True)
class Java:
    """A Java that is recent enough: its path, its major version, and its own description."""

    path: Path
    major: int
    description: str


@once
def java() -> Java:
    """The Java of ``JAVA_HOME``, else of the PATH.

    Raises:
        ProvisionError: there is none, or it is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise ProvisionError(f"no java {where}: install Java {JAVA_MINIMUM} or later (a runtime is enough)")
    try:
        output = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise ProvisionError(
            f"{found} -version does not work ({error}): install Java {JAVA_MINIMUM} or later"
        ) from error
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    major = int(match[1]) if match else 0
    if major < JAVA_MINIMUM:
        raise ProvisionError(f"{found} is Java {major or 'of an unknown version'}: install {JAVA_MINIMUM} or later")
    return Java(Path(found), major, " / ".join(output.split("\n")).strip(" /"))


def kafka(progress: ProgressCallback = quiet, version: str = "") -> list[Path]:
    """The class path of Kafka: ``KAFKA_HOME``'s jars, else the pinned jars, fetched when they are not cached.

    Args:
        version: one of ``KAFKAS``; empty: the one in KAFKA_HOME, or the first of them.

    Raises:
        ProvisionError: KAFKA_HOME contains none, or another version; it cannot be fetched, or differs from the pins.
    """
    home = os.environ.get("KAFKA_HOME")
    if home:
        return _distribution(home, version)
    needed = version or KAFKAS[0]
    return sorted(cache.install(f"kafka-{needed}", lambda into: _fetch_kafka(needed, into, progress)).glob("*.jar"))


def _distribution(home: str, version: str) -> list[Path]:
    jars = sorted((Path(home) / "libs").glob("*.jar"))
    found = kafka_version(jars)
    if not any(jar.name.startswith("kafka_2.") for jar in jars):
        raise ProvisionError(f"KAFKA_HOME={home} has no libs/kafka_2.*.jar: unset it, or name a distribution")
    if version not in ("", found):
        raise ProvisionError(f"KAFKA_HOME={home} is Kafka {found}, but the scenario needs {version}: unset it")
    if any(jar.name.startswith("slf4j-reload4j") for jar in jars):
        raise ProvisionError(
            f"KAFKA_HOME={home} is Kafka {found} with log4j 1, whose logs cannot be read here: unset it, and name a "
            f"version with the scenario's option kafka ({', '.join(KAFKAS)})"
        )
    return jars


def kafka_version(jars: Sequence[Path]) -> str:
    """The version of the Kafka on this class path, by the name of its jar."""
    names = (re.fullmatch(r"kafka_2\.\d+-(.+)\.jar", jar.name) for jar in jars)
    return next((match[1] for match in names if match), "unknown")


def kafka_pins(version: str = KAFKAS[0]) -> dict[str, str]:
    """File name -> SHA-256 of every jar of a Kafka."""
    text = resources.files("fencepost.clusters.kafka").joinpath(f"kafka-{version}.sha256").read_text()
    return {name: digest for digest, name in (line.split() for line in text.splitlines())}


def _artifacts(version: str) -> list[tuple[str, str, str]]:
    return [
        *(("org.apache.kafka", name, version) for name in ("kafka_2.13", "kafka-tools")),
        *((LOG4J, name, LOG4J_VERSION) for name in ("log4j-slf4j-impl", "log4j-core")),
        *(OF_KAFKA_3 if of_kafka_3(version) else ()),
    ]


def _fetch_kafka(version: str, into: Path, progress: ProgressCallback) -> None:
    progress(f"fetching Kafka {version} (54 MB, once)")
    ways = [way for way in (_ivy(version, into), _maven(version, into)) if way]
    if not ways:
        raise ProvisionError("Kafka cannot be fetched: install pyspark or Maven, or set KAFKA_HOME to a distribution")
    failures = []
    for argv in ways:
        try:
            run(argv, into.parent, {})
        except ProvisionError as error:
            failures.append(str(error))
            continue
        progress("checking the fetched jars")
        return cache.verify(into, kafka_pins(version))
    raise ProvisionError(
        f"Kafka {version} could not be fetched. {' Then: '.join(failures)} Is there a network? "
        "Otherwise set KAFKA_HOME to a Kafka distribution"
    )


def _ivy(version: str, into: Path) -> list[str] | None:
    """The command that lets PySpark's Ivy fetch the jars; None without PySpark."""
    spec = importlib.util.find_spec("pyspark")  # finds, does not import
    folders = spec.submodule_search_locations if spec else None
    ivy = sorted(Path(folders[0], "jars").glob("ivy-*.jar")) if folders else []
    if not ivy:
        return None
    home = into.parent
    lines = "".join(
        f"<dependency org={quoteattr(group)} name={quoteattr(name)} rev={quoteattr(rev)} conf='default->default'/>"
        for group, name, rev in _artifacts(version)
    )
    lines += "".join(f"<exclude org={quoteattr(group)} module={quoteattr(name)}/>" for group, name in LOG4J_1)
    module = home / "ivy.xml"
    module.write_text(
        "<ivy-module version='2.0'><info organisation='fencepost' module='kafka'/>"
        f"<configurations><conf name='default'/></configurations><dependencies>{lines}</dependencies></ivy-module>"
    )
    pattern = f"{into}/[artifact]-[revision](-[classifier]).[ext]"
    own = f"-Divy.default.ivy.user.dir={home / 'ivy-home'}"  # the user's own Ivy folder stays as it is
    return [
        *(str(java().path), own, "-jar", str(ivy[-1]), "-ivy", str(module), "-cache", str(home / "ivy-cache")),
        *("-confs", "default", "-retrieve", pattern),
    ]


def _maven(version: str, into: Path) -> list[str] | None:
    """The command that lets Maven fetch the jars; None where it is not installed."""
    mvn = shutil.which("mvn")
    if mvn is None:
        return None
    excluded = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>" for group, name in LOG4J_1
    )
    lines = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{rev}</version>"
        f"<exclusions>{excluded}</exclusions></dependency>"
        for group, name, rev in _artifacts(version)
    )
    module = into.parent / "pom.xml"
    module.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>fencepost</groupId><artifactId>kafka</artifactId>"
        f"<version>1</version><dependencies>{lines}</dependencies></project>"
    )
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={into}", "-DincludeScope=runtime")
    return [mvn, "--batch-mode", "--quiet", "--file", str(module), *goal]


def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
    """Run a program that fetches files; it does not outlive the harness."""
    name = Path(argv[0]).name
    try:
        with ProcessOwner.open() as owner:
            log = owner.directory / "log"
            code = wait_ended(owner.spawn(argv, log=log, env=env, cwd=cwd), FETCH_S)
            lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except (ClusterError, WaitTimeout) as error:
        raise ProvisionError(f"{name} did not finish: {error}") from error
    if code:
        reason = next(
            (line for line in lines if ANNOUNCEMENT.search(line)), lines[-1] if lines else "it printed nothing"
        )
        raise ProvisionError(f"{name} ended with exit code {code}: {reason[:300]}.")
