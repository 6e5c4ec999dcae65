"""A small server with the addresses of `rove serve`, over a made-up run: for tests of the page alone.

    with MockServer(head, changes) as server: page.goto(server.url("?run=x"))

The run can be finished at once, or go on as its clock is moved: ``server.now = 12.5``.
"""

import io
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from orchestrator.runs.timeline import Change
from tests.browser.own_network import apart

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
PAGE = Path(str(files("orchestrator.live") / "page"))


def picture(frame: int) -> bytes:
    """A JPEG that differs from frame to frame."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (320, 240), (40, 60, 80))
    draw = ImageDraw.Draw(image)
    left = 40 + frame * 3 % 180
    draw.ellipse((left, 60, left + 70, 150), fill=(214, 178, 150))
    draw.rectangle((left - 6, 54, left + 76, 156), outline=(0, 200, 120), width=3)
    draw.text((left - 4, 40), f"s{frame % 40 + 1} 0.{30 + frame % 20}", fill=(255, 255, 255))
    data = io.BytesIO()
    image.save(data, "JPEG")
    return data.getvalue()


class MockServer:
    """``documents``: answers of further addresses, as ``api/fleet``. ``now`` is None for a finished run."""

    def __init__(self, head: dict[str, Any], changes: list[Change], now: float | None = None) -> None:
        self.head = head
        self.changes = changes
        self.now = now
        self.speed = 0.0
        self.documents: dict[str, Any] = {
            "api/about": {"version": 1, "control": True, "fleet": True, "metrics": False}
        }
        self.posted: list[str] = []
        self.token: str | None = None
        self.answers = True
        self._started = time.monotonic()
        with apart():
            self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers = False
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def url(self, rest: str = "") -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{rest}"

    def at(self) -> float:
        """The run's present moment."""
        if self.now is None:
            return max(change.t for change in self.changes)
        return self.now + (time.monotonic() - self._started) * self.speed

    def go(self, now: float, speed: float = 1.0) -> None:
        """Lets the run go on from ``now``."""
        self.now, self.speed, self._started = now, speed, time.monotonic()


def _handler(server: MockServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            server.posted.append(self.path)
            self._send(b'{"asked": true}', "application/json")

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            path = parts.path.lstrip("/")
            try:
                self._answer(path, {key: each[0] for key, each in parse_qs(parts.query).items()})
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _answer(self, path: str, query: dict[str, str]) -> None:
            shown = self.headers.get("Authorization")
            if path.startswith("api/") and server.token is not None and shown != f"Bearer {server.token}":
                self._send(b'{"error": "a token is needed"}', "application/json", 401)
                return
            if path in server.documents:
                self._send(json.dumps(server.documents[path]).encode(), "application/json")
            elif path.endswith("/head"):
                self._send(json.dumps(server.head).encode(), "application/json")
            elif path.endswith("/changes"):
                self._stream(int(query.get("after", 0)))
            elif "/pictures/" in path:
                frame = int(query["frame"]) if "frame" in query else self._newest(unquote(path))
                self._send(picture(frame), "image/jpeg", extra={"X-Rove-Frame": str(frame)})
            else:
                self._file(path or "index.html")

        def _newest(self, path: str) -> int:
            shown = [
                c.value["frame"] for c in server.changes if c.channel == "picture" and c.t <= server.at()
            ]
            return max(shown, default=0)

        def _file(self, path: str) -> None:
            file = PAGE / path
            if not file.is_file() or not file.resolve().is_relative_to(PAGE.resolve()):
                self._send(b'{"error": "there is nothing here"}', "application/json", 404)
                return
            self._send(file.read_bytes(), KINDS.get(file.suffix, "text/plain"))

        def _stream(self, cursor: int) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            order = sorted(server.changes, key=lambda change: change.t)
            while server.answers:
                now = server.at()
                until = cursor
                while until < len(order) and order[until].t <= now and until - cursor < 4000:
                    until += 1
                ended = server.now is None and until == len(order)
                message = {"cursor": until, "now": now, "ended": ended, "changes": order[cursor:until]}
                if until > cursor or ended:
                    self.wfile.write(f"id: {until}\ndata: {json.dumps(message)}\n\n".encode())
                    self.wfile.flush()
                cursor = until
                if ended:
                    return
                time.sleep(0.05)

        def _send(
            self, data: bytes, kind: str, status: int = 200, extra: dict[str, str] | None = None
        ) -> None:
            self.send_response(status)
            headers = {
                "Content-Type": kind,
                "Content-Length": str(len(data)),
                "Content-Security-Policy": POLICY,
            }
            for name, value in {**headers, **(extra or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    return Handler
