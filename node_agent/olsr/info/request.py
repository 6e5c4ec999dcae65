"""Parses requests as olsrd's plug-ins do: a line of HTTP or just a path, which may name several sections."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from node_agent.olsr.info.snapshot import Snapshot

OK, NO_CONTENT = "200 OK", "204 No Content"
NOT_FOUND, TIMEOUT = "404 Not Found", "408 Request Timeout"
TOO_LARGE, BUSY = "413 Request Entity Too Large", "503 Service Unavailable"


class Dialect(NamedTuple):
    """One plug-in. ``commands`` maps a name to its sections; "" is the empty path.

    ``render`` gets the requested sections in the order of ``sections``.
    """

    content_type: str
    sections: tuple[str, ...]
    commands: Mapping[str, tuple[str, ...]]
    render: Callable[[Snapshot, Sequence[str]], str]


class Request(NamedTuple):
    names: tuple[str, ...] | None
    """None: not a path at all."""
    headers: bool


def parse(data: bytes) -> Request:
    """Parses a request. Never fails: a request that cannot be parsed is answered as not found."""
    line = data.decode("latin-1").lstrip().partition("\n")[0].strip()
    words = line.split()
    headers = len(words) == 3 and words[0].upper() == "GET" and words[2].upper() in ("HTTP/1.0", "HTTP/1.1")
    path = words[1] if headers else line
    for prefix, wanted in (("/http", True), ("/plain", False)):
        if path == prefix or path.startswith(f"{prefix}/"):
            path, headers = path.removeprefix(prefix), wanted
    if path and not path.startswith("/"):
        return Request(None, headers)
    return Request(tuple(name for name in path.split("/") if name), headers)


def answer(dialect: Dialect, request: Request, snapshot: Callable[[], Snapshot]) -> bytes:
    if request.names is None or not all(name in dialect.commands for name in request.names):
        return error(request.headers, NOT_FOUND)
    asked = {section for name in request.names or ("",) for section in dialect.commands[name]}
    body = dialect.render(snapshot(), [section for section in dialect.sections if section in asked])
    if not request.headers:
        return body.encode() or b"\n"
    return _with_headers(OK if body else NO_CONTENT, dialect.content_type, body)


def error(headers: bool, status: str) -> bytes:
    body = f"error: {status}\n\n"
    return _with_headers(status, "text/plain; charset=utf-8", body) if headers else body.encode()


def _with_headers(status: str, content_type: str, body: str) -> bytes:
    data = body.encode()
    head = (
        f"HTTP/1.0 {status}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(data)}",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + data
