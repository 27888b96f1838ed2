"""Answer the requests of a page over HTTP: those that know its token, come to its own address, and are small."""

from __future__ import annotations

import hmac
import io
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

__all__ = ["Answer", "PageServer", "is_own_host"]

MOST_CONNECTIONS = 16
"""The most connections at a time; further ones are closed at once."""
MOST_BYTES = 8_192
"""The most bytes of the head of a request."""
PATIENCE = 5.0
"""The most seconds until a request has come, and until its answer has been taken."""
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Answer(NamedTuple):
    """The answer to a request: its ``kind`` as a media type, its ``body``, and the ``policy`` of its content."""

    kind: str
    body: bytes
    policy: str = "default-src 'none'; frame-ancestors 'none'"


Route = Callable[[dict[str, str]], Answer | None]
"""A function from the parameters of a request to its answer; ``None``: there is nothing."""


def is_own_host(text: str, names: frozenset[str]) -> bool:
    """Return whether the ``Host`` of a request is an address in numbers, localhost or one of some names. A page of
    another site, whose name leads to this machine, has its own name there.

    >>> [is_own_host(text, frozenset()) for text in ("127.0.0.1:9000", "[::1]:80", "LOCALHOST", "evil.example:9000")]
    [True, True, True, False]
    """
    try:
        host = urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host in names:
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class PageServer(ThreadingHTTPServer):
    """A server of some ``routes``, by method and path, on an address. No request reads a file, keeps its connection,
    or is answered without the ``token``. Raises :class:`OSError` if the address cannot be used."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_CONNECTIONS

    def __init__(
        self, host: str, port: int, token: str, routes: Mapping[tuple[str, str], Route], names: frozenset[str]
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.token, self.routes, self.names = token.encode(), routes, names
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((host, port), PageHandler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), name="acep page", daemon=True)

    def server_bind(self) -> None:
        """Bind to the address, without asking for its name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more. A request that is being answered is left to its thread."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, or close the connection if there are too many."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no more threads can be started
            self._places.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and leave the place to the next one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that hangs up in the middle is no concern of the stream."""


class PageHandler(BaseHTTPRequestHandler):
    """One request. It is read within a time and a size, and its connection ends with the answer."""

    server: PageServer
    timeout = PATIENCE
    protocol_version = "HTTP/1.0"

    def setup(self) -> None:
        """Read the head of the request. The bytes after it are never read."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BytesIO(_read_head(self.connection))

    def parse_request(self) -> bool:
        """Read the request, and refuse one without the token or to another host, whatever it asks for."""
        if not super().parse_request():
            return False
        hosts = self.headers.get_all("Host") or []
        try:
            self.parts = urlsplit(self.path)
            parameters = parse_qs(self.parts.query, max_num_fields=8)
        except ValueError:
            self.send_error(400)
            return False
        self.parameters = {name: values[-1] for name, values in parameters.items()}
        token = self.parameters.get("token", "").encode("utf-8", "replace")
        is_known = hmac.compare_digest(token, self.server.token)
        if len(hosts) != 1 or not is_own_host(hosts[0], self.server.names) or not is_known:
            self.send_error(403)
            return False
        return True

    def do_GET(self) -> None:
        """Answer a GET."""
        self._answer()

    def do_POST(self) -> None:
        """Answer a POST."""
        self._answer()

    def _answer(self) -> None:
        route = self.server.routes.get((self.command, self.parts.path))
        if route is None:
            is_other = any(path == self.parts.path for _, path in self.server.routes)
            self.send_error(405 if is_other else 404)
            return
        answer = route(self.parameters)
        if answer is None:
            self.send_error(404)
            return
        self._send(200, answer)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Answer with a number and no content, so that nothing of the request comes back."""
        self._send(405 if code == 501 else code, Answer("", b""))

    def _send(self, code: int, answer: Answer) -> None:
        self.send_response_only(code)
        for name, text in HEADERS.items():
            self.send_header(name, text)
        self.send_header("Content-Security-Policy", answer.policy)
        if answer.kind:
            self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if getattr(self, "command", "") != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *_: Any) -> None:
        """Write nothing: stderr is that of the command."""


def _read_head(connection: socket.socket) -> bytes:
    """Return the head of a request, or nothing if it is too long or too slow."""
    head, until = b"", time.monotonic() + PATIENCE
    while b"\r\n\r\n" not in head and b"\n\n" not in head:
        seconds = until - time.monotonic()
        if seconds <= 0 or len(head) >= MOST_BYTES:
            return b""
        connection.settimeout(seconds)
        try:
            received = connection.recv(MOST_BYTES - len(head))
        except OSError:
            return b""
        if not received:
            return b""
        head += received
    connection.settimeout(PATIENCE)
    return head
