"""A small OpenID Connect provider on a real socket: it asks nobody anything and vouches for `claims`."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt

CLIENT, SECRET = "gradingsite", "a client secret of thirty-two bytes"


@dataclass
class Provider:
    """`asked` are the token requests that came."""

    claims: dict[str, Any]
    url: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    token_status: int = 200


@contextmanager
def provider(**claims: Any) -> Iterator[Provider]:
    state = Provider({"sub": "17", "email": "olga@example.test", "email_verified": True, **claims})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/.well-known/openid-configuration":
                self.answer(
                    {
                        "issuer": state.url,
                        "authorization_endpoint": f"{state.url}/authorize",
                        "token_endpoint": f"{state.url}/token",
                        "userinfo_endpoint": f"{state.url}/userinfo",
                        "jwks_uri": f"{state.url}/keys",
                        "token_endpoint_auth_methods_supported": ["client_secret_post"],
                    }
                )
            elif self.path == "/userinfo" and self.headers["Authorization"] == "Bearer granted":
                self.answer(state.claims)
            else:
                self.answer({"error": "not found"}, 404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            state.asked.append({name: values[0] for name, values in parse_qs(body).items()})
            token = jwt.encode(
                {"iss": state.url, "aud": CLIENT, "exp": 4_000_000_000, "iat": 1, **state.claims}, SECRET
            )
            self.answer({"access_token": "granted", "token_type": "Bearer", "id_token": token}, state.token_status)

        def answer(self, said: dict[str, Any], status: int = 200) -> None:
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
