"""An endpoint that gives OAuth tokens for client credentials, as a server on loopback."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

SECRET = "correct-horse-battery"


class TokenEndpoint:
    """Gives tokens to the client ``guest``, on a thread of its own.

    Attributes:
        url: its address.
        given: the tokens, in the order in which they were given.
        life_s: of a token.
    """

    def __init__(self, life_s: float = 3600, certificate: tuple[Path, Path] | None = None) -> None:
        """``certificate``: for 127.0.0.1, and its key; then it wants https."""
        self.given: list[str] = []
        self.life_s = life_s
        server = self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if certificate:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}/token"
        self._thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, authorization: str, form: Mapping[str, list[str]]) -> tuple[int, Mapping[str, Any]]:
        """The status, and the body as JSON (RFC 6749, sections 5.1 and 5.2)."""
        known = base64.b64encode(f"guest:{SECRET}".encode()).decode()
        if authorization != f"Basic {known}":
            return 401, {"error": "invalid_client"}
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        now = int(time.time())
        claims = {"sub": "guest", "iat": now, "exp": now + int(self.life_s), "jti": str(len(self.given))}
        claims |= {"scope": form["scope"][0]} if "scope" in form else {}
        self.given.append(f"{_encoded({'alg': 'none'})}.{_encoded(claims)}.")
        return 200, {"access_token": self.given[-1], "token_type": "Bearer", "expires_in": self.life_s}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
                status, body = endpoint.answer(self.headers.get("Authorization", ""), form)
                text = json.dumps(body).encode()
                self.send_response(status)
                if "location" in body:
                    self.send_header("Location", body["location"])
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self) -> None:
                self.do_POST()  # what a redirect makes of it

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return Handler


def _encoded(claims: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
