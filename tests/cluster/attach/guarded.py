"""Clusters that want SASL or TLS, and check rights: their listeners, certificates and users."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from token_endpoint import SECRET

from cluster.worlds import LONG_S
from fencepost.clusters import local
from fencepost.clusters.kafka import server_properties
from fencepost.clusters.kafka.server_properties import Listener
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.interfaces import ClusterSpec
from fencepost.processes.owner import ProcessOwner

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_MODULES = "org.apache.kafka.common.security"

# What the listener of a slot is configured with on a broker, with its protocol as ``protocol``.
Guard = Callable[[Listener], Mapping[str, Any]]


@contextmanager
def guarded(
    owner: ProcessOwner, *guards: Guard, kafka: str = "", masters: Collection[str] = ()
) -> Iterator[ManagedCluster]:
    """A cluster whose listeners of each slot are guarded; its other listeners are open to ``ANONYMOUS``.

    ``masters``: users who may do everything; if there are some, others need rights.
    """
    usual = server_properties.broker_properties

    def properties(spec: ClusterSpec, broker: int, listeners: tuple[Listener, ...], *more: Any) -> dict[str, Any]:
        found = usual(spec, broker, listeners, *more)
        protocols, slots = found["listener.security.protocol.map"], listeners[-len(guards) :]
        for guard, listener in zip(guards, slots, strict=True):
            wanted = dict(guard(listener))
            protocols = protocols.replace(f"{listener.name}:PLAINTEXT", f"{listener.name}:{wanted.pop('protocol')}")
            prefix = f"listener.name.{listener.name.lower()}"
            found |= {f"{prefix}.{name}": value for name, value in wanted.items()}
        return {**found, "listener.security.protocol.map": protocols}

    everybody = ";".join(f"User:{name}" for name in ("ANONYMOUS", *masters))
    rights = {"authorizer.class.name": AUTHORIZER, "super.users": everybody} if masters else {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server_properties, "broker_properties", properties)
        running = local.start(ClusterSpec(slots=len(guards), kafka=kafka, broker_config=rights), owner)
    yield running
    running.stop()


def administrator(cluster: ManagedCluster) -> AdminClient:
    """``ANONYMOUS``."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap()})


def grant(cluster: ManagedCluster, *bindings: AclBinding) -> None:
    """Give rights, and wait until they are in force at all brokers, which the last one of them shows."""
    admin = administrator(cluster)
    for answer in admin.create_acls(list(bindings)).values():
        answer.result(LONG_S)


def password(listener: Listener) -> Mapping[str, Any]:
    """The user ``guest``, and the user ``stranger``, both with the same secret."""
    module = f"{_MODULES}.plain.PlainLoginModule"
    users = " ".join(f'user_{name}="{SECRET}"' for name in ("guest", "stranger"))
    jaas = f'{module} required username="guest" password="{SECRET}" {users};'
    return {"protocol": "SASL_PLAINTEXT", "sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": jaas}


SCRAM = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}


def scram(listener: Listener) -> Mapping[str, Any]:
    """Users of ``make_scram_user``."""
    jaas = f"{_MODULES}.scram.ScramLoginModule required;"
    modules = {f"{name.lower()}.sasl.jaas.config": jaas for name in SCRAM}
    return {"protocol": "SASL_PLAINTEXT", "sasl.enabled.mechanisms": ",".join(SCRAM), **modules}


def make_scram_user(cluster: ManagedCluster, name: str) -> None:
    """A user of both mechanisms."""
    admin = administrator(cluster)
    for mechanism in SCRAM.values():  # one change of a user for each request
        info = ScramCredentialInfo(mechanism, 4096)
        made = UserScramCredentialUpsertion(name, info, SECRET.encode())
        for answer in admin.alter_user_scram_credentials([made]).values():
            answer.result(LONG_S)


def tokens(listener: Listener) -> Mapping[str, Any]:
    """Whoever has a token: the brokers of this test believe unsigned ones, if their scope is ``kafka``."""
    jaas = (
        f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker" '
        'unsecuredValidatorRequiredScope="kafka";'
    )
    wanted = {"sasl.enabled.mechanisms": "OAUTHBEARER", "oauthbearer.sasl.jaas.config": jaas}
    return {"protocol": "SASL_PLAINTEXT", **wanted}


def over_tls(guard: Guard, authority: Authority) -> Guard:
    """The same over TLS."""
    return lambda listener: {**guard(listener), **authority.stores(listener.advertised.host), "protocol": "SASL_SSL"}


def with_certificate(authority: Authority, address: str = "") -> Guard:
    """Clients need a certificate; the broker has one for ``address``, by default its own."""

    def guard(listener: Listener) -> Mapping[str, Any]:
        stores = authority.stores(address or listener.advertised.host)
        return {"protocol": "SSL", "ssl.client.auth": "required", **stores}

    return guard


class Authority:
    """Signs certificates: ``pem`` is its own one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self.pem, self._key = self._make("authority", "-nodes", "-addext", "keyUsage=critical,keyCertSign")

    def sign(self, name: str, address: str, secret: str = "") -> tuple[Path, Path]:
        """A certificate for an address, and its key, which a secret may lock."""
        locked = ["-passout", "stdin"] if secret else ["-nodes"]
        signed = ["-CA", str(self.pem), "-CAkey", str(self._key), "-addext", f"subjectAltName=IP:{address}"]
        return self._make(name, *locked, *signed, "-addext", "basicConstraints=critical,CA:FALSE", secret=secret)

    def stores(self, address: str) -> Mapping[str, Any]:
        """A broker's settings: its certificate for an address, and whom it trusts."""
        both = self._folder / f"broker-{address}.both"
        if not both.exists():
            pem, key = self.sign(f"broker-{address}", address)
            both.write_text(key.read_text() + pem.read_text())
        locations = {"ssl.keystore.location": both, "ssl.truststore.location": self.pem}
        return {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM", **locations}

    def _make(self, name: str, *options: str, secret: str = "") -> tuple[Path, Path]:
        pem, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        kind = ("-x509", "-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
        files = ("-subj", f"/CN={name}", "-out", str(pem), "-keyout", str(key))
        argv = ["openssl", "req", *kind, *files, *options]
        subprocess.run(argv, check=True, capture_output=True, timeout=30, input=secret.encode())
        return pem, key
