"""Tokens for SASL/OAUTHBEARER by OAuth's client credentials, which clients in Python do not fetch themselves.

Imports no client.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import inspect
import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from typing import Any, Dict, Optional, Tuple
from urllib.parse import urlencode

ANSWER_S = 5.0
MOST_BYTES = 1 << 20
RENEW_AFTER = 0.8  # of a token's life, as in librdkafka


class TokenEndpoint:
    """The tokens of one endpoint (RFC 6749, section 4.4). May be used from several threads.

    Attributes:
        extensions: sent to brokers with each token (RFC 7628, section 3.1).
    """

    def __init__(
        self, url: str, client: str, secret: str, scope: str = "", extensions: str = "", ca: Optional[str] = None
    ) -> None:
        """``extensions``: ``name=value``, with commas between them; ``ca``: a PEM file for https.

        Raises:
            OSError: the file cannot be used.
        """
        self._url, self._scope = url, scope
        self._shown = url.partition("?")[0]  # a query may hold a secret
        # Not encoded any further, as in librdkafka.
        self._who = base64.b64encode(("%s:%s" % (client, secret)).encode()).decode()
        pairs = (pair.partition("=") for pair in extensions.split(",") if pair)
        self.extensions: Dict[str, str] = {name.strip(): value.strip() for name, _, value in pairs}
        https = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca))
        self._opener = urllib.request.build_opener(https, _NoRedirect())
        self._lock = threading.Lock()
        self._token, self._until_s = "", 0.0

    def token(self) -> str:
        """A token that is valid for some time. It is used again while most of its life is left; an endpoint that does
        not say how long that is (``expires_in``) is asked each time.

        Raises:
            OSError: the endpoint does not answer within 5 s, or gives no token. The message has no secret.
        """
        with self._lock:
            begun_s = time.monotonic()
            if begun_s >= self._until_s:
                self._token, life_s = self._fetch()
                self._until_s = begun_s + RENEW_AFTER * life_s
            return self._token

    def _fetch(self) -> Tuple[str, float]:
        form = {"grant_type": "client_credentials", **({"scope": self._scope} if self._scope else {})}
        headers = {"Authorization": "Basic " + self._who, "Accept": "application/json"}
        request = urllib.request.Request(self._url, urlencode(form).encode(), headers)
        try:
            with self._opener.open(request, timeout=ANSWER_S) as answer:
                found = json.loads(answer.read(MOST_BYTES))
            return str(found["access_token"]), float(found.get("expires_in") or 0)
        except urllib.error.HTTPError as error:
            error.close()
            raise OSError("the token endpoint %s refused: %d %s" % (self._shown, error.code, error.reason)) from None
        except (KeyError, TypeError, ValueError):
            raise OSError("the answer of the token endpoint %s has no access_token" % self._shown) from None
        except (OSError, http.client.HTTPException) as error:
            raise OSError("the token endpoint %s did not answer: %s" % (self._shown, error)) from error


def provider(endpoint: TokenEndpoint, library_class: Any) -> Any:
    """The endpoint as an object of a library's ``AbstractTokenProvider``; both libraries check the class.

    In aiokafka ``token`` is a coroutine, and must not block the event loop.
    """

    async def awaited(_: Any) -> str:
        return await asyncio.get_running_loop().run_in_executor(None, endpoint.token)

    def called(_: Any) -> str:
        return endpoint.token()

    token = awaited if inspect.iscoroutinefunction(library_class.token) else called
    return type("TokenProvider", (library_class,), {"token": token, "extensions": lambda _: endpoint.extensions})()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: the secret is for this endpoint only."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse it."""
