"""The images of the Docker back-end: built from ``docker/images/`` unless the engine has one of the same ingredients.

Their bases are public images. Where no registry can be reached, ``FENCEPOST_DOCKER_BASE`` names an image with
Java >= 17, Python >= 3.8 and ``ss`` instead: Kafka's jars and the client libraries are then copied from this machine,
and its Python must have this one's version.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from fencepost.clusters import cache, toxiproxy
from fencepost.clusters.addresses import Addresses
from fencepost.clusters.cache import ProgressCallback
from fencepost.clusters.docker import engine
from fencepost.clusters.kafka import provision, server_properties
from fencepost.clusters.kafka.jvm import FLAGS
from fencepost.clusters.kafka.template import standalone
from fencepost.errors import ProvisionError
from fencepost.interfaces import ClusterSpec
from fencepost.model.clients import KNOWN, Client

CHECKPOINT = "bootstrap.checkpoint"
BASE = "FENCEPOST_DOCKER_BASE"
REMEDY = f"Where no registry can be reached, {BASE} names a local image to build from"
BUILD_S = 900.0
HOME = Path("/opt/fencepost")  # in every image
Content = Path | str


@dataclass(frozen=True)
class Images:
    """Names of images, and a file copied from Kafka's: the content of a formatted log directory."""

    kafka: str
    toxiproxy: str
    member: str
    checkpoint: Path


def images(progress: ProgressCallback) -> Images:
    """All of them; missing ones are built.

    Raises:
        ProvisionError: no engine, or an image could not be built; shows the engine's output.
    """
    base = os.environ.get(BASE, "")
    files = resources.files("fencepost.images")
    jars = provision.kafka(progress) if base else []
    spec = ClusterSpec(brokers=1, slots=1)
    settings = standalone(spec, Addresses(0, prefix="127.77"), HOME / "data")
    of_kafka: dict[str, Content] = {
        **{f"libs/{jar.name}": jar for jar in jars},
        "template.sh": files.joinpath("template.sh").read_text(),
        "standalone.properties": server_properties.render(settings),
        "log4j2.yaml": resources.files("fencepost.clusters.kafka").joinpath("log4j2.yaml").read_text(),
    }
    clients = " ".join(map(str, installed()))
    kafka = _built("kafka", of_kafka, {"FLAGS": " ".join(FLAGS)}, base, progress)
    return Images(
        kafka,
        _built("toxiproxy", {toxiproxy.SERVER: toxiproxy.server(progress)}, {}, base, progress),
        _built("member", client_libraries() if base else {}, {"CLIENTS": clients}, base, progress),
        cache.install(f"image-{kafka.rpartition(':')[2]}", lambda into: _checkpoint(kafka, into)) / CHECKPOINT,
    )


def any_there() -> bool:
    """Whether images were built before, perhaps with other ingredients.

    Raises:
        ProvisionError: no engine answers.
    """
    with engine.client() as client:
        return bool(client.images.list(name="fencepost-member"))


def _checkpoint(image: str, into: Path) -> None:
    engine.copy_from_image(image, [str(HOME / CHECKPOINT)], into / CHECKPOINT, engine.ANSWER_S * 10)


def installed() -> list[Client]:
    """The client libraries of our loop that are installed with Fencepost, with their releases: also the image's."""
    found = []
    for library in KNOWN.values():
        if library.imported:
            with suppress(metadata.PackageNotFoundError):
                found.append(Client(library.name, metadata.version(library.name)))
    return found


def client_libraries() -> dict[str, Content]:
    """These libraries and their dependencies, as files of a build's context."""
    return {
        f"packages/{file}": Path(str(file.locate()))
        for name in _closure(client.name for client in installed())
        for file in metadata.files(name) or ()
        if not {"..", "__pycache__"} & {*file.parts}
    }


def _closure(names: Iterable[str]) -> set[str]:
    """Distributions and all their dependencies, without extras."""
    found, left = set[str](), [*names]
    while left:
        name = left.pop()
        found.add(name)
        requirements = (Requirement(text) for text in metadata.requires(name) or ())
        needed = (one.name for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""}))
        left += [one for one in needed if one not in found]
    return found


def _built(
    name: str, content: Mapping[str, Content], arguments: Mapping[str, str], base: str, progress: ProgressCallback
) -> str:
    from docker.errors import BuildError
    from testcontainers.core.image import DockerImage

    recipe = resources.files("fencepost.images").joinpath(f"{name}.Dockerfile").read_text()
    given = {**arguments, **({"BASE": base} if base else {})}
    with engine.client() as client:
        tag = f"fencepost-{name}:{_digest(recipe, content, {**given, 'id': _id(client, base)})}"
        if client.images.list(name=tag):
            return tag
    progress(f"building the image {tag} (once)")
    with tempfile.TemporaryDirectory() as context, engine.engine_errors(f"building {tag}", ProvisionError):
        _lay_out({"Dockerfile": recipe, **content}, Path(context))
        try:
            with DockerImage(context, {"timeout": BUILD_S}, tag, clean_up=False, buildargs=given, forcerm=True):
                return tag
        except BuildError as error:
            output = "".join(line.get("stream", "") for line in error.build_log)
            raise ProvisionError(f"the image {tag} could not be built: {error}. {output[-1000:]}\n{REMEDY}") from error


def _id(client: Any, base: str) -> str:
    found = client.images.list(name=base) if base else []
    return found[0].id if found else ""


def _digest(recipe: str, content: Mapping[str, Content], arguments: Mapping[str, str]) -> str:
    parts = [recipe, *(f"{name}={value}" for name, value in sorted(arguments.items()))]
    for name, what in sorted(content.items()):
        parts.append(f"{name} {what if isinstance(what, str) else (what.stat().st_size, what.stat().st_mtime_ns)}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _lay_out(content: Mapping[str, Content], context: Path) -> None:
    """Write the files of a build's context, with the folders that a recipe copies, even if empty."""
    for folder in ("libs", "packages"):
        (context / folder).mkdir()
    for name, what in content.items():
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, Path):
            shutil.copy(what, context / name)
        else:
            (context / name).write_text(what)
