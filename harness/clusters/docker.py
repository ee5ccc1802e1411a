"""The Docker back-end. For now only whether there is an engine; the one module that imports docker."""

from __future__ import annotations

from fencepost.errors import ProvisionError

ANSWER_S = 3


def engine() -> str:
    """The version of the Docker engine that answers.

    Raises:
        ProvisionError: none does.
    """
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=ANSWER_S)
        try:
            return str(client.version()["Version"])
        finally:
            client.close()
    except DockerException as error:
        raise ProvisionError("no Docker engine answers: start one (dockerd), or set DOCKER_HOST") from error
