"""Provides Toxiproxy's server: found on the PATH or in the cache, else created once.

It is built by Go or, if Go is missing, by an official Go image on a Docker engine: either way, the sources are verified
against Go's checksum database (unless the user's Go settings switch that off). A build depends on the compiler, so the
binary itself has no pin. ``FENCEPOST_TOXIPROXY_IMAGE`` names an image that contains the server, and has priority: it is
trusted as it is (name it with a digest, and Docker verifies it). The file ``origin`` next to the binary records the
source and the SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from fencepost.clusters import cache
from fencepost.clusters.cache import ProgressCallback, quiet
from fencepost.clusters.docker import engine
from fencepost.clusters.kafka import provision
from fencepost.errors import ProvisionError

VERSION = "2.12.0"
MINIMUM = (2, 12)
IMAGE = "FENCEPOST_TOXIPROXY_IMAGE"
REMEDIES = (
    "install Go >= 1.23 (it builds Toxiproxy), put a toxiproxy-server >= 2.12 on the PATH, or start a Docker engine"
)
SERVER = "toxiproxy-server"
PACKAGE = f"github.com/Shopify/toxiproxy/v2/cmd/server@v{VERSION}"
# Paths of the server in Toxiproxy's images, and in images built from its packages.
IN_IMAGES = ("/toxiproxy", f"/{SERVER}", f"/usr/bin/{SERVER}", f"/usr/local/bin/{SERVER}", "/go/bin/toxiproxy")


def server(progress: ProgressCallback = quiet) -> Path:
    """The Toxiproxy server.

    Raises:
        ProvisionError: there is none and it cannot be built, or it is too old; names the remedies.
    """
    found = shutil.which(SERVER)
    if found and not os.environ.get(IMAGE):
        return _recent(Path(found))
    return cache.install(_home().name, lambda into: _make(into / SERVER, progress)) / SERVER


def there() -> Path | None:
    """The server if it needs no build, else None."""
    found = shutil.which(SERVER)
    if found and not os.environ.get(IMAGE):
        return Path(found)
    return _home() / SERVER if cache.intact(_home()) else None


def way() -> str:
    """How ``server`` would get one.

    Raises:
        ProvisionError: there is no way; names the remedies.
    """
    image, go = os.environ.get(IMAGE), shutil.which("go")
    if go and not image:
        return f"builds Toxiproxy {VERSION} with {go}"
    _engine()
    return f"copies Toxiproxy from the image {image}" if image else f"builds Toxiproxy {VERSION} in {engine.GO_IMAGE}"


def _home() -> Path:
    image = os.environ.get(IMAGE)
    name = f"image-{hashlib.sha256(image.encode()).hexdigest()[:12]}" if image else VERSION
    return cache.directory() / f"toxiproxy-{name}"


def _make(into: Path, progress: ProgressCallback) -> None:
    image = os.environ.get(IMAGE)
    if image:
        progress(f"copying Toxiproxy from the image {image} (once)")
        origin = f"image {image}, {engine.copy_from_image(image, IN_IMAGES, into, provision.FETCH_S)}"
    elif shutil.which("go"):
        origin = _build("Go", lambda: _go_install(into), progress)
    else:
        _engine()
        build = _in_docker(into)
        origin = _build(f"the Go of the image {engine.GO_IMAGE}", build, progress)
    _recent(into)
    (into.parent / "origin").write_text(f"{origin}\nsha256 {cache.sha256(into)}\n")


def _build(what: str, build: Callable[[], str], progress: ProgressCallback) -> str:
    progress(f"building Toxiproxy {VERSION} with {what} (once)")
    try:
        return build()
    except ProvisionError as error:
        raise ProvisionError(
            f"Toxiproxy {VERSION} could not be built. {error} Is there a network? Otherwise put a {SERVER} on "
            f"the PATH, or name an image that contains one in {IMAGE}"
        ) from error


def _go_install(into: Path) -> str:
    go = str(shutil.which("go"))
    provision.run([go, "install", PACKAGE], into.parent.parent, {"GOBIN": str(into.parent), "CGO_ENABLED": "0"})
    (into.parent / "server").rename(into)
    return f"{PACKAGE}, built by {go}"


def _in_docker(into: Path) -> Callable[[], str]:
    def build() -> str:
        image = engine.go_install(PACKAGE, "server", into, provision.FETCH_S)
        return f"{PACKAGE}, built by {engine.GO_IMAGE}, {image}"

    return build


def _engine() -> None:
    try:
        engine.engine()
    except ProvisionError as error:
        raise ProvisionError(f"no {SERVER} on the PATH and no way to get one: {REMEDIES} ({error})") from error


def _recent(binary: Path) -> Path:
    """The same binary, if its version is recent enough; a build by Go reports the version ``git``."""
    try:
        output = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ProvisionError(
            f"{binary} -version does not work ({error}): it is no {SERVER} for this machine"
        ) from error
    match = re.search(r"version (?:git|(\d+)\.(\d+))", output)
    if match is None or (match[1] and (int(match[1]), int(match[2])) < MINIMUM):
        raise ProvisionError(f"{binary} is not Toxiproxy >= 2.12 (it prints {output.strip()[:100]!r}): {REMEDIES}")
    return binary
