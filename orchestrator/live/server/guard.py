"""Decides whether a request is looked at: method, path, host, origin, token. Without I/O.

Names that a foreign web page could use for this server (DNS rebinding), requests that another site made
(cross-site), and anything without the token where one is needed are refused before a handler runs.
"""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

from orchestrator.live.server.access import Access
from orchestrator.live.server.answers import Refusal

READING = ("GET", "HEAD")
METHODS = (*READING, "POST")
MOST_SEGMENTS = 8
LONGEST_SEGMENT = 256
LONGEST_PATH = 2048
MOST_PARAMETERS = 8
BEARER = "Bearer "
_LOOPBACK_NAMES = ("localhost", "ip6-localhost", "ip6-loopback")
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(:(?P<port>[0-9]{1,5}))?")
_BAD_HOST = "this server is not known by that name: use the address that rove serve printed"


class Place(NamedTuple):
    """A path in parts, each decoded once, and the parameters after it."""

    parts: tuple[str, ...]
    query: Mapping[str, str]


def place_of(raw: str) -> Place:
    """Raises Refusal. Parts are names to be looked up, never parts of a file's path."""
    path, _, query = raw.partition("?")
    if not path.startswith("/") or len(raw) > LONGEST_PATH:
        raise Refusal(HTTPStatus.BAD_REQUEST, "the path cannot be used")
    segments = path[1:].split("/") if path != "/" else []
    if len(segments) > MOST_SEGMENTS:
        raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")
    return Place(tuple(map(_decoded, segments)), _parameters(query))


def _decoded(segment: str) -> str:
    try:
        text = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise Refusal(HTTPStatus.BAD_REQUEST, "the path is not UTF-8") from None
    if len(text) > LONGEST_SEGMENT or not text.isprintable():
        raise Refusal(HTTPStatus.BAD_REQUEST, "the path cannot be used")
    return text


def _parameters(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except (ValueError, UnicodeError):
        raise Refusal(HTTPStatus.BAD_REQUEST, "the parameters cannot be used") from None
    return dict(pairs)


class Guard:
    """``host`` is the address that the server listens on, ``names`` are further names of it."""

    def __init__(self, host: str, access: Access, names: Iterable[str] = ()) -> None:
        self._anywhere = is_unspecified(host)
        self._names = {*_LOOPBACK_NAMES, host.lower().strip("[]"), *(name.lower() for name in names)}
        self._access = access

    def check(self, method: str, headers: Mapping[str, str], top_page: bool) -> None:
        """Raises Refusal. ``top_page``: links of other sites may lead to it."""
        if method not in METHODS:
            allow = {"Allow": ", ".join(METHODS)}
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "this method is not known here", allow)
        self._check_host(headers.get("Host", ""))
        site = headers.get("Sec-Fetch-Site", "none")
        followed = top_page and method in READING and headers.get("Sec-Fetch-Mode") == "navigate"
        if site not in ("same-origin", "none") and not followed:
            raise Refusal(HTTPStatus.FORBIDDEN, "other sites may not ask this server")
        origin = headers.get("Origin")
        own = (f"http://{headers.get('Host', '')}", f"https://{headers.get('Host', '')}")
        if (origin is not None and origin.lower() not in map(str.lower, own)) or (
            origin is None and method not in READING
        ):
            raise Refusal(HTTPStatus.FORBIDDEN, "the header Origin does not name this server")

    def _check_host(self, stated: str) -> None:
        match = _HOST.fullmatch(stated)
        if match is None:
            raise Refusal(HTTPStatus.BAD_REQUEST, "the header Host is missing or malformed")
        name = match["name"].strip("[]").lower().rstrip(".")
        if name in self._names or is_loopback(name):
            return
        if not (self._anywhere and is_address(name)):
            raise Refusal(HTTPStatus.MISDIRECTED_REQUEST, _BAD_HOST)

    def admit(self, peer: str, headers: Mapping[str, str], cookie: str) -> None:
        """Raises Refusal unless the request has a session or the token, where that is needed."""
        if not self._access.needed or (cookie and self._access.in_session(cookie)):
            return
        stated = headers.get("Authorization", "")
        if not stated:
            raise unauthorised("a token is needed: rove serve printed it")
        self.check_token(peer, stated.removeprefix(BEARER) if stated.startswith(BEARER) else "")

    def check_token(self, peer: str, token: str) -> None:
        """Raises Refusal. The right token passes whatever others have shown from the same address: all users
        of this machine have one.
        """
        if self._access.right_token(token):
            return
        if self._access.too_many_wrong(peer):
            raise Refusal(
                HTTPStatus.TOO_MANY_REQUESTS, "too many wrong tokens: wait a minute", {"Retry-After": "60"}
            )
        raise unauthorised("this is not the token that rove serve printed")


def unauthorised(text: str) -> Refusal:
    return Refusal(HTTPStatus.UNAUTHORIZED, text, {"WWW-Authenticate": "Bearer"})


def is_loopback(name: str) -> bool:
    """A host name or address that always means the machine itself."""
    if name.lower() in _LOOPBACK_NAMES:
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def is_unspecified(name: str) -> bool:
    """Every address of this machine."""
    try:
        return ip_address(name.strip("[]")).is_unspecified
    except ValueError:
        return not name


def is_address(name: str) -> bool:
    """An address was not looked up: no foreign name server can have led the browser here."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
