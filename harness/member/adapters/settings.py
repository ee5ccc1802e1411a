"""Kafka's settings, and their names in clients that use other names. Imports no client."""

from __future__ import annotations

import ssl
from typing import Any, Container, Dict, Iterable, Mapping, Optional, Tuple

from fencepost_member.adapters.bearer_tokens import TokenEndpoint, provider
from fencepost_member.config import AUTOMATIC, ConfigError, MemberConfig

STRATEGY = "partition.assignment.strategy"
ISOLATION, READ_COMMITTED = "isolation.level", "read_committed"
STRATEGIES = {"eager": "range", "cooperative": "cooperative-sticky"}
# The group or the slot, and the loop, decide these; a client setting of that name would contradict them.
RESERVED = ("bootstrap.servers", "group.id", "group.protocol", "group.instance.id")
RESERVED_LOOP = ("enable.auto.commit", "enable.auto.offset.store", "auto.commit.interval.ms")

_TUNING = (
    "auto.offset.reset",
    "check.crcs",
    "connections.max.idle.ms",
    "exclude.internal.topics",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "heartbeat.interval.ms",
    ISOLATION,
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "max.poll.records",
    "metadata.max.age.ms",
    "request.timeout.ms",
    "retry.backoff.ms",
    "session.timeout.ms",
    STRATEGY,
)
_KAFKA_PYTHON_ONLY = ("receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "send.buffer.bytes")
# SASL and TLS: librdkafka's names, which users give when they attach a cluster, and the names of clients in Python.
# Those that begin with ``OAUTH`` are of ``TokenEndpoint``.
OAUTH = "oauth_"
ACCESS = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.oauthbearer.method": "oauth_method",
    "sasl.oauthbearer.token.endpoint.url": "oauth_url",
    "sasl.oauthbearer.client.id": "oauth_client",
    "sasl.oauthbearer.client.secret": "oauth_secret",
    "sasl.oauthbearer.scope": "oauth_scope",
    "sasl.oauthbearer.extensions": "oauth_extensions",
    "https.ca.location": "oauth_ca",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
}
# Prefixes of the names of all SASL and TLS settings, also of settings that no client in Python has.
ACCESS_PREFIXES = ("sasl.", "ssl.", "https.ca.", "security.", "enable.ssl.", "enable.sasl.", "oauth")
# Client -> allowed setting -> the client's own name. A client that is not listed uses Kafka's names and checks them.
NAMES: Mapping[str, Mapping[str, str]] = {
    "kafka-python": {**{name: name.replace(".", "_") for name in (*_TUNING, *_KAFKA_PYTHON_ONLY)}, **ACCESS},
    "verifiable-consumer": {name: name for name in _TUNING},
    "aiokafka": {**{name: name.replace(".", "_") for name in _TUNING}, **ACCESS},
}


def unknown(client: str, names: Mapping[str, Any]) -> str:
    """An error message if the client has no setting of one of these names; otherwise empty."""
    known = NAMES.get(client)
    wrong = sorted(set(names) - set(known)) if known is not None else []
    return "%s has no setting %s; it has %s" % (client, wrong[0], ", ".join(sorted(known or ()))) if wrong else ""


def refuse_unknown(client: str, given: Iterable[str], known: Container[str]) -> None:
    """Raise ConfigError when a release of a client in Python has no keyword of one of these names."""
    wrong = [name.replace("_", ".") for name in sorted(given) if name not in known]
    if wrong:
        raise ConfigError("%s refuses the client settings: this release has no %s" % (client, ", ".join(wrong)))


def access_arguments(settings: Mapping[str, Any]) -> Dict[str, Any]:
    """The SASL and TLS settings (``ACCESS``) among some settings, as keyword arguments of clients in Python."""
    found = {ACCESS[name]: value for name, value in settings.items() if name in ACCESS}
    if "ssl_check_hostname" in found:
        found["ssl_check_hostname"] = found["ssl_check_hostname"] == "https"
    if "security_protocol" in found:
        found["security_protocol"] = found["security_protocol"].upper()  # librdkafka accepts lower case, too
    return found


def credentials(keywords: Mapping[str, Any]) -> Tuple[Optional[ssl.SSLContext], Optional[TokenEndpoint]]:
    """The TLS context and the endpoint of tokens that some keyword arguments (``access_arguments``) describe.

    Raises:
        OSError: a certificate or key file cannot be read.
    """
    tokens = {name[len(OAUTH) :]: value for name, value in keywords.items() if name.startswith(OAUTH)}
    endpoint = TokenEndpoint(**tokens) if tokens.pop("method", "") else None
    if "SSL" not in keywords.get("security_protocol", ""):
        return None, endpoint
    context = ssl.create_default_context(cafile=keywords.get("ssl_cafile"))
    context.check_hostname = keywords.get("ssl_check_hostname", True)
    if "ssl_certfile" in keywords:
        # Without a password the library would prompt for one on the terminal.
        context.load_cert_chain(keywords["ssl_certfile"], keywords.get("ssl_keyfile"), keywords.get("ssl_password", ""))
    return context, endpoint


def connecting(keywords: Mapping[str, Any], token_provider: Any) -> Dict[str, Any]:
    """Keyword arguments of a client in Python: an SSL context instead of the TLS keywords, and a provider of tokens
    instead of the keywords of their endpoint.

    Args:
        token_provider: the library's ``AbstractTokenProvider``.

    Raises:
        OSError: a certificate or key file cannot be read.
    """
    found = {name: value for name, value in keywords.items() if not name.startswith(("ssl_", OAUTH))}
    context, endpoint = credentials(keywords)
    if context is not None:
        found["ssl_context"] = context
    if endpoint is not None:
        found["sasl_oauth_token_provider"] = provider(endpoint, token_provider)
    return found


def access_of(config: MemberConfig) -> Dict[str, Any]:
    """The SASL and TLS settings of a member; every other client that it creates needs them, too."""
    return {name: value for name, value in config.client_config.items() if name.startswith(ACCESS_PREFIXES)}


def settings_of(config: MemberConfig) -> Dict[str, Any]:
    """The client settings of a member of the classic protocol, by Kafka's names.

    Raises:
        ConfigError: ``client_config`` has a setting that the group or the loop decides.
    """
    for name in (*RESERVED, *RESERVED_LOOP):
        if name in config.client_config:
            source = "the loop's commit policy" if name in RESERVED_LOOP else "the group"
            raise ConfigError("found the client setting %s, but %s decides it: remove it" % (name, source))
    auto = config.loop.commit in AUTOMATIC
    settings: Dict[str, Any] = {
        "bootstrap.servers": config.bootstrap,
        "group.id": config.group,
        "client.id": config.actor,
        "auto.offset.reset": "earliest",
        ISOLATION: READ_COMMITTED,  # librdkafka's default; the default of other clients is read_uncommitted
        "enable.auto.commit": auto,
    }
    if auto:
        settings["auto.commit.interval.ms"] = int(config.loop.commit_every_ms)
    if config.instance_id is not None:
        settings["group.instance.id"] = config.instance_id
    usual = {STRATEGY: STRATEGIES[config.protocol]} if config.protocol in STRATEGIES else {}
    other = {STRATEGY: config.assignors} if config.assignors else {}
    return {**settings, **usual, **config.client_config, **other}


def arguments(client: str, settings: Mapping[str, Any], assignors: Mapping[str, Any]) -> Dict[str, Any]:
    """Convert ``settings_of`` a member to keyword arguments of ``client``; ``assignors`` are its classes by name.

    Raises:
        ConfigError: the client has no such setting or assignor; the message lists those that it has.
    """
    own = {name: name.replace(".", "_") for name in (*RESERVED, *RESERVED_LOOP, "client.id")}
    wrong = unknown(client, {name: value for name, value in settings.items() if name not in own})
    if wrong:
        raise ConfigError(wrong)
    names = {**own, **NAMES[client]}
    found = {names[name]: value for name, value in settings.items() if name != STRATEGY}
    strategy = [name.strip() for name in str(settings[STRATEGY]).split(",")] if STRATEGY in settings else []
    missing = [name for name in strategy if name not in assignors]
    if missing:
        raise ConfigError("%s has no assignor %r; it has %s" % (client, missing[0], ", ".join(assignors)))
    chosen = {STRATEGY.replace(".", "_"): [assignors[name] for name in strategy]} if strategy else {}
    return {**found, **access_arguments(settings), **chosen}
