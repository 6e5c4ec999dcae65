"""Makes requests that are wrong in one way or several. Pure: a seed gives the same ones."""

import random
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from benchmarks.attacks.mutation import ByteChange, extend, flip_bits, insert_or_cut, truncate

HALF_OPEN_SHARE = 0.03
PIPELINED_SHARE = 0.05
MUTATED_SHARE = 0.2
TAME_SHARE = 0.4
"""Requests that are HTTP beyond doubt: what is wrong with them is only what they ask for."""
LARGEST_BODY = 200_000

METHODS = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PATCH",
    "PRI",
    "get",
    "G\x00T",
    "",
)
TRAVERSALS = (
    "..",
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "..%5c..%5c..%5cetc%5cpasswd",
    "%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd",
    "....//....//etc/passwd",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "%00",
    "latest.jpg%00.js",
    "%252e%252e%252fetc%252fpasswd",
    "..;/..;/etc/passwd",
    "file:///etc/passwd",
    "%ff%fe",
    "\udcff",
    ".",
    "",
    "spec.yaml",
    "journal.jsonl",
    "manifest.json",
    "secret.txt",
    "A" * 300,
    "A" * 5000,
    "%41" * 90,
    "ü",
    "%E2%80%AE",
    "~root",
    "con",
    "x" * 64,
)
NUMBERS = ("0", "1", "-1", "00000000001", "1e9", "99999999999999999999", "NaN", "٣", "0x10", "1" * 400, " ")
HOSTS = (
    "",
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost:1",
    "[::1]:80",
    "127.0.0.1@evil.example",
    "localhost\x00",
    "a" * 300,
    "127.0.0.1:999999",
    "[",
    "::1",
)
WELL_FORMED = (
    "Accept-Encoding: gzip",
    "Accept: application/openmetrics-text; version=1.0.0",
    "Sec-Fetch-Site: same-origin",
    "Sec-Fetch-Site: cross-site",
    "Last-Event-ID: 12",
    "Authorization: Bearer wrong",
    "Range: bytes=0-10",
    "If-None-Match: *",
    "X-Forwarded-For: 10.0.0.1",
)
ODD_HEADERS = (
    "Origin: http://evil.example",
    "Origin: null",
    "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Site: same-site",
    "Sec-Fetch-Mode: navigate",
    "Expect: 100-continue",
    "Expect: a-miracle",
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
    "Range: bytes=0-10",
    "Range: bytes=5-1,99999999999999-",
    "Accept-Encoding: gzip",
    "Accept-Encoding: gzip;q=nan, *;q=0, br",
    "Accept: application/openmetrics-text; version=1.0.0",
    "Accept: " + "a/b," * 1500,
    "Cookie: a=b; c; =; rove=\x01; $Version=1",
    "Cookie: " + "; ".join(f"c{n}=v" for n in range(200)),
    "Authorization: Bearer wrong",
    "Authorization: Bearer ",
    "Authorization: Basic cm9vdDpyb290",
    "Authorization: Bearer " + "t" * 4000,
    "Last-Event-ID: -1",
    "Last-Event-ID: " + "9" * 100,
    "If-None-Match: *",
    "X-Forwarded-For: 127.0.0.1",
    "X-HTTP-Method-Override: DELETE",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: \x0bchunked",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Content-Length: 5\r\nContent-Length: 6",
    "Content-Length: 0x10",
    "Content-Type: application/json",
    "Content-Type: application/json; charset=utf-7",
    "Content-Type: multipart/form-data; boundary=x",
    "Content-Encoding: gzip",
    "No-Colon-Here",
    " Folded: header\r\n  continues",
    "Bad Name: x",
    "X-Nul: a\x00b",
    "X-Long: " + "v" * 20_000,
    "\r\n".join(f"X-{n}: y" for n in range(150)),
    "Connection: close, keep-alive, , ,",
    "Connection: keep-alive",
)
BODIES = (
    b"",
    b"{}",
    b'{"token": 5}',
    b'{"token": "wrong"}',
    b'{"token": "wrong", "more": 1}',
    b"[" * 50_000,
    b'{"token": "' + b"x" * 70_000 + b'"}',
    b"\xff\xfe\x00",
    b"\x1f\x8b\x08\x00broken",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"FFFFFFFFFFFFFFFF\r\n",
    b"-1\r\nx\r\n0\r\n\r\n",
    b"5;ext=" + b"e" * 9000 + b"\r\nhello\r\n0\r\n\r\n",
    b"a" * LARGEST_BODY,
)
VERSIONS = (
    "HTTP/1.1",
    "HTTP/1.1",
    "HTTP/1.1",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/2.0",
    "HTTP/0.9",
    "HTTP/9.9",
    "",
)
MUTATIONS: Sequence[ByteChange] = (flip_bits, truncate, extend, insert_or_cut)


class Manner(StrEnum):
    WHOLE = "whole"
    HALF_OPEN = "half-open"
    PIPELINED = "pipelined"


class Case(NamedTuple):
    """Bytes for one connection, and what is done with it afterwards."""

    manner: Manner
    data: bytes


class Target(NamedTuple):
    """What is known of the server: its host and port, a session's cookie, names of a run in it."""

    host: str
    cookie: str
    run: str
    node: str
    app: str
    sink: str


def addresses(target: Target) -> list[str]:
    run, sink = target.run, target.sink.replace("/", "%2F")
    return [
        "/",
        "/main.js",
        "/vendor/uplot/uPlot.iife.min.js",
        "/favicon.ico",
        "/api/about",
        "/api/session",
        "/api/runs",
        f"/api/runs/{run}/head",
        f"/api/runs/{run}/changes",
        f"/api/runs/{run}/changes?after=7",
        f"/api/runs/{run}/pictures/{target.app}/{sink}",
        f"/api/runs/{run}/pictures/{target.app}/{sink}?frame=3",
        f"/api/runs/{run}/pictures/{target.app}/{sink}/3",
        f"/api/runs/{run}/stop",
        f"/api/runs/{run}/down",
        f"/api/sweeps/{run}",
        "/api/fleet",
        f"/runs/{run}/nodes/{target.node}/metrics",
        f"/nodes/{target.node}/metrics",
        "/metrics",
        "/sd",
    ]


def cases(target: Target, seed: int) -> Iterator[Case]:
    """Endless."""
    rng = random.Random(seed)
    known = addresses(target)
    while True:
        chance = rng.random()
        if chance < HALF_OPEN_SHARE:
            data = _request(target, known, rng)
            yield Case(Manner.HALF_OPEN, data[: rng.randrange(len(data) + 1)])
        elif chance < HALF_OPEN_SHARE + PIPELINED_SHARE:
            make = _tame if rng.random() < 0.5 else _request
            several = b"".join(make(target, known, rng, close=False) for _ in range(rng.randint(2, 30)))
            yield Case(Manner.PIPELINED, several)
        elif rng.random() < TAME_SHARE:
            yield Case(Manner.WHOLE, _tame(target, known, rng))
        else:
            yield Case(Manner.WHOLE, _mutated(_request(target, known, rng), rng))


def _tame(target: Target, known: Sequence[str], rng: random.Random, close: bool = True) -> bytes:
    method = rng.choice(("GET", "GET", "GET", "HEAD", "POST"))
    lines = [f"{method} {_path(rng.choice(known), rng)} HTTP/1.1", f"Host: {target.host}"]
    if rng.random() < 0.9:
        lines.append(f"Cookie: {target.cookie}")
    lines += rng.sample(WELL_FORMED, rng.choice((0, 0, 1, 2)))
    body = b""
    if method == "POST":
        body = rng.choice(BODIES)
        lines += [
            f"Origin: http://{target.host}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def _request(target: Target, known: Sequence[str], rng: random.Random, close: bool = True) -> bytes:
    method = "GET" if rng.random() < 0.6 else rng.choice(METHODS)
    path = _path(rng.choice(known), rng)
    version = "HTTP/1.1" if rng.random() < 0.95 else rng.choice(VERSIONS)
    lines = [f"{method} {path} {version}".rstrip() if rng.random() < 0.98 else path]
    lines.append(f"Host: {target.host}" if rng.random() < 0.92 else f"Host: {rng.choice(HOSTS)}")
    if rng.random() < 0.75:
        lines.append(f"Cookie: {target.cookie}")
    if method == "POST" and rng.random() < 0.7:
        lines.append(f"Origin: http://{target.host}")
        lines.append("Content-Type: application/json")
    lines += rng.sample(ODD_HEADERS, rng.choice((0, 0, 0, 0, 0, 1, 1, 2)))
    body = rng.choice(BODIES) if method not in ("GET", "HEAD") or rng.random() < 0.05 else b""
    if body and rng.random() < 0.8:
        lines.append(f"Content-Length: {max(0, len(body) + rng.choice((0, 0, 0, 0, -1, 1000)))}")
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def _path(path: str, rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.45:
        return path
    parts = path.split("/")
    place = rng.randrange(1, len(parts)) if len(parts) > 1 else 0
    if chance < 0.8:
        parts[place] = rng.choice(TRAVERSALS)
    elif chance < 0.87:
        parts.insert(place, rng.choice(TRAVERSALS))
    elif chance < 0.95:
        separator = "&" if "?" in path else "?"
        name = rng.choice(("after", "frame", "x", "token", "after[]", "%00"))
        return f"{path}{separator}{name}={rng.choice((*NUMBERS, *TRAVERSALS))}" + "&a=b" * rng.choice(
            (0, 0, 20)
        )
    else:
        return rng.choice(
            ("*", "http://evil.example/", "//evil.example/x", "example:443", "?", "#", "/" * 3000)
        )
    return "/".join(parts)


def _mutated(data: bytes, rng: random.Random) -> bytes:
    if rng.random() >= MUTATED_SHARE:
        return data
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        if changed:
            rng.choice(MUTATIONS)(changed, rng)
    return bytes(changed)
