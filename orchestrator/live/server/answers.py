"""Answers of the server: JSON documents, and errors of one line that name no file and show no trace."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from orchestrator.foreign_text import one_line

JSON = "application/json"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
SAFETY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "rove",
}
"""Headers of every answer."""
_LONGEST_TEXT = 200
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Refusal(Exception):
    """The request is not answered: ``status`` and one line for whoever asked."""

    def __init__(self, status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = one_line(text, _LONGEST_TEXT)
        self.headers = dict(headers or {})


def not_found(what: str = "there is nothing here") -> Refusal:
    return Refusal(HTTPStatus.NOT_FOUND, what)


def document(value: Any, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return binary(_encode(value) + b"\n", JSON, status=status)


def binary(
    data: bytes,
    content_type: str,
    headers: Mapping[str, str] | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> web.Response:
    return web.Response(
        body=data,
        status=int(status),
        reason=status.phrase,
        headers={**SAFETY, "Content-Type": content_type, **(headers or {})},
    )


def refused(refusal: Refusal) -> web.Response:
    answer = document({"error": refusal.text}, refusal.status)
    answer.headers.update(refusal.headers)
    return answer
