"""The settings of SASL and TLS that give access to a cluster of others, from a properties file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from fencepost.errors import ScenarioError, refuse
from fencepost_member.adapters.settings import ACCESS, access_arguments, credentials

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PASSWORD = ("sasl.username", "sasl.password")
_TOKENS = ("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret")
# Mechanism -> the settings that it needs.
MECHANISMS: Mapping[str, tuple[str, ...]] = {
    "PLAIN": _PASSWORD,
    "SCRAM-SHA-256": _PASSWORD,
    "SCRAM-SHA-512": _PASSWORD,
    "OAUTHBEARER": _TOKENS,
}
_METHOD = "sasl.oauthbearer.method"


def read_access(path: Path | None) -> dict[str, str]:
    """The settings in a properties file: lines ``name=value`` with librdkafka's names; ``#`` begins a comment. Without
    a file there are none.

    Raises:
        ScenarioError: names the wrong line or setting, or the setting with an unusable file; never a secret.
    """
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise ScenarioError(f"the cluster's settings in {path} cannot be read: {why}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            raise ScenarioError(f"line {number} of {path} does not have the form name=value")
        if name not in ACCESS:
            raise ScenarioError(
                f"{path} sets {name[:80]!r}, which is not a setting of access; use only {', '.join(ACCESS)}"
            )
        found[name] = _readable(path, name, value) if name.endswith(".location") else value
    refuse(ScenarioError(f"{path} gives no access: {why}") for why in _contradictions(found))
    try:
        credentials(access_arguments(found))
    except OSError as error:
        raise ScenarioError(f"the TLS files that {path} names cannot be used: {error}") from error
    return found


def mechanism_of(access: Mapping[str, str]) -> str:
    """The SASL mechanism of some settings, which librdkafka knows by two names; empty: none."""
    return access.get("sasl.mechanism", access.get("sasl.mechanisms", ""))


def _contradictions(found: Mapping[str, str]) -> Iterator[str]:
    protocol, mechanism = found.get("security.protocol", "PLAINTEXT").upper(), mechanism_of(found)
    if protocol not in PROTOCOLS:
        yield f"security.protocol must be one of {', '.join(PROTOCOLS)}"
        return
    sasl = protocol.startswith("SASL_")
    if not sasl and any(name.startswith(("sasl.", "https.")) for name in found):
        yield f"sasl.* needs security.protocol=SASL_SSL (or SASL_PLAINTEXT), but it is {protocol}"
    if "SSL" not in protocol and any(name.startswith("ssl.") for name in found):
        yield f"ssl.* needs security.protocol=SASL_SSL (or SSL), but it is {protocol}"
    if ("ssl.key.location" in found) != ("ssl.certificate.location" in found):
        yield "a client certificate needs both ssl.certificate.location and ssl.key.location"
    if not sasl:
        return
    if mechanism not in MECHANISMS:
        yield f"sasl.mechanism must be one of {', '.join(MECHANISMS)}"
        return
    if missing := [name for name in MECHANISMS[mechanism] if not found.get(name)]:
        yield f"sasl.mechanism={mechanism} needs {', '.join(missing)}"
    if mechanism == "OAUTHBEARER" and found.get(_METHOD) != "oidc":
        yield f"sasl.mechanism=OAUTHBEARER needs {_METHOD}=oidc: tokens are fetched with client credentials"
    url = found.get(_TOKENS[0], "http://")
    if not url.startswith(("http://", "https://")) or "@" in url:
        yield f"{_TOKENS[0]} must be an address http(s)://HOST/PATH without a user"
    other = {_PASSWORD: ("sasl.oauthbearer.", "https."), _TOKENS: _PASSWORD}[MECHANISMS[mechanism]]
    if unused := [name for name in found if name.startswith(other)]:
        yield f"sasl.mechanism={mechanism} does not use {', '.join(unused)}: remove it"


def _readable(path: Path, name: str, value: str) -> str:
    """The file's absolute path, because members and the clean-up process have other working directories."""
    try:
        Path(value).read_bytes()
    except OSError as error:
        raise ScenarioError(f"the file that {path} names as {name} cannot be read: {error.strerror}") from error
    return str(Path(value).absolute())
