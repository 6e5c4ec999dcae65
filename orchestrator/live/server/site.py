"""Answers requests: each passes the guard, then the table of addresses says who answers it."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from node_agent.model.checked import Checked, Refused
from orchestrator.errors import RoveError
from orchestrator.live.fleet import Fleet
from orchestrator.live.prometheus.exposition import Exposition
from orchestrator.live.server import pictures
from orchestrator.live.server.access import Access
from orchestrator.live.server.answers import Refusal, binary, document, not_found, refused
from orchestrator.live.server.assets import Asset, page_files
from orchestrator.live.server.catalogue import Catalogue
from orchestrator.live.server.control import Control
from orchestrator.live.server.feeds import Feeds
from orchestrator.live.server.guard import READING, Guard, Place, place_of
from orchestrator.live.server.listening import MOST_BODY, REQUEST_S, keep
from orchestrator.live.server.prometheus_door import MetricsDoor
from orchestrator.live.server.stream import cursor_in, stream
from orchestrator.live.server.sweeps import Sweeps
from orchestrator.live.server.totals import Totals
from orchestrator.runs.run_directory import RunDirectory

VERSION = 1
MOST_ANSWER_S = 60.0
_ANY = None
_LONGEST_NUMBER = 12

Answerer = Callable[[web.BaseRequest, Place], Awaitable[web.StreamResponse]]


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: str


_LOGINS: Checked[Login] = Checked(Login, MOST_BODY)


class Route(NamedTuple):
    """``parts``: names, and None for any one. ``open``: the page itself, which holds nothing secret."""

    parts: tuple[str | None, ...]
    answer: Answerer
    method: str = "GET"
    open: bool = False
    streams: bool = False

    def fits(self, parts: tuple[str, ...]) -> bool:
        return len(parts) == len(self.parts) and all(
            own in (_ANY, other) for own, other in zip(self.parts, parts, strict=True)
        )


class Site:
    """Must be closed. ``cookie``: its name; browsers do not tell ports of one machine apart, names do."""

    def __init__(
        self,
        guard: Guard,
        access: Access,
        catalogue: Catalogue,
        feeds: Feeds,
        totals: Totals,
        control: Control,
        fleet: Fleet | None = None,
        metrics: MetricsDoor | None = None,
        cookie: str = "rove",
    ) -> None:
        self._guard = guard
        self._access = access
        self._catalogue = catalogue
        self._feeds = feeds
        self._control = control
        self._fleet = fleet
        self._metrics = metrics
        self._cookie = cookie
        self._sweeps = Sweeps(catalogue)
        self._totals = totals
        self._page = page_files()
        self._ends = False
        self._routes = (
            Route(("api", "about"), self._about),
            Route(("api", "session"), self._session, "POST", open=True),
            Route(("api", "runs"), self._runs),
            Route(("api", "runs", _ANY, "head"), self._head),
            Route(("api", "runs", _ANY, "changes"), self._changes, streams=True),
            Route(("api", "runs", _ANY, "pictures", _ANY, _ANY), self._picture),
            Route(("api", "runs", _ANY, "pictures", _ANY, _ANY, _ANY), self._picture),
            Route(("api", "runs", _ANY, "stop"), self._stop, "POST", streams=True),
            Route(("api", "runs", _ANY, "down"), self._down, "POST", streams=True),
            Route(("api", "sweeps", _ANY), self._sweep),
            Route(("api", "fleet"), self._fleet_state),
            Route(("runs", _ANY, "metrics"), self._run_metrics),
            Route(("runs", _ANY, "nodes", _ANY, "metrics"), self._node_metrics),
            Route(("nodes", _ANY, "metrics"), self._newest_node_metrics),
            Route(("metrics",), self._all_metrics),
            Route(("sd",), self._discovery),
        )

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except Refusal as refusal:
            answer = refused(refusal)
        except TimeoutError:
            answer = refused(Refusal(HTTPStatus.GATEWAY_TIMEOUT, "it took too long"))
        except RoveError as error:
            answer = refused(not_found(str(error)))
        except ConnectionError:
            raise
        except OSError as error:
            what = f"files cannot be read now: {(error.strerror or 'no reason given').lower()}"
            answer = refused(Refusal(HTTPStatus.SERVICE_UNAVAILABLE, what))
        if request.method not in READING:
            answer.force_close()
        return answer

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        place = place_of(request.raw_path)
        asset = self._page.get(place.parts)
        self._guard.check(request.method, request.headers, top_page=not place.parts)
        if asset is not None:
            if request.method not in READING:
                raise _wrong_method(READING)
            return _file(request, asset)
        fitting = [route for route in self._routes if route.fits(place.parts)]
        if not all(route.open for route in fitting) or not fitting:
            self._guard.admit(_peer(request), request.headers, request.cookies.get(self._cookie, ""))
            keep(request)
        if not fitting:
            raise not_found()
        asked = "GET" if request.method in READING else request.method
        route = next((route for route in fitting if route.method == asked), None)
        if route is None:
            raise _wrong_method([each.method for each in fitting])
        if route.streams:
            return await route.answer(request, place)
        async with asyncio.timeout(MOST_ANSWER_S):
            return await route.answer(request, place)

    async def settle(self, timeout: float) -> None:
        """Lets browsers hear of the end of the runs that they watch."""
        await self._feeds.settle(timeout)

    def end(self) -> None:
        """Ends all streams soon."""
        self._ends = True
        self._feeds.wake()

    async def close(self) -> None:
        self.end()
        await self._totals.close()
        await self._feeds.close()
        if self._fleet is not None:
            await self._fleet.close()
        if self._metrics is not None:
            await self._metrics.close()

    async def _about(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        """What this server offers, for the page's first question."""
        return document(
            {
                "version": VERSION,
                "control": self._control.allowed,
                "fleet": self._fleet is not None,
                "metrics": self._metrics is not None,
            }
        )

    async def _session(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        login = await _body(request, _LOGINS)
        self._guard.check_token(_peer(request), login.token)
        keep(request)
        answer = document({"ok": True})
        secure = "; Secure" if request.headers.get("Origin", "").startswith("https:") else ""
        answer.headers["Set-Cookie"] = (
            f"{self._cookie}={self._access.open_session()}; Path=/; HttpOnly; SameSite=Strict{secure}"
        )
        return answer

    async def _runs(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        return document({"runs": await asyncio.to_thread(self._catalogue.documents)})

    async def _head(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        async with self._feeds.watch(await self._run(place.parts[2])) as feed:
            return document({**await feed.head(), "control": self._control.allowed})

    async def _changes(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        stated = place.query.get("after") or request.headers.get("Last-Event-ID") or ""
        cursor = cursor_in(stated)
        async with self._feeds.watch(await self._run(place.parts[2])) as feed:
            return await stream(request, feed, cursor, _takes_gzip(request), lambda: self._ends)

    async def _picture(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        run = await self._run(place.parts[2])
        app, replica = place.parts[4:6]
        stated = place.parts[6] if len(place.parts) > 6 else place.query.get("frame", "")
        frame = _number(stated) if stated else None
        found = await asyncio.to_thread(pictures.picture, run, app, replica, frame)
        if found is None:
            raise not_found("there is no picture")
        shown = {} if found.frame is None else {"X-Rove-Frame": str(found.frame)}
        return binary(found.data, pictures.JPEG, shown)

    async def _stop(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        return document(await self._control.stop(await self._run(place.parts[2])))

    async def _down(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        return document(await self._control.down(await self._run(place.parts[2])))

    async def _sweep(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        found = await asyncio.to_thread(self._sweeps.document, place.parts[2], dict(self._totals.known))
        if found is None:
            raise not_found("there is no such sweep")
        self._totals.want(await asyncio.to_thread(self._sweeps.unanalysed, found))
        return document(found)

    async def _fleet_state(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        if self._fleet is None:
            raise not_found("this server shows runs: rove serve TOPOLOGY shows real nodes")
        return document(await self._fleet.document())

    async def _run_metrics(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        run = await self._run(place.parts[1])
        found = await self._door().run(run, request.headers.get("Accept", ""))
        if found is None:
            raise not_found("this run does not go on")
        return _exposed(found)

    async def _node_metrics(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        return await self._metrics_of(request, await self._run(place.parts[1]), place.parts[3])

    async def _newest_node_metrics(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        run = await asyncio.to_thread(self._catalogue.living)
        if run is None:
            raise not_found("no run goes on")
        return await self._metrics_of(request, run, place.parts[1])

    async def _metrics_of(self, request: web.BaseRequest, run: RunDirectory, node: str) -> web.StreamResponse:
        try:
            found = await self._door().node(run, node, request.headers.get("Accept", ""))
        except RoveError as error:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error
        if found is None:
            raise not_found("there is no such node")
        return _exposed(found)

    async def _all_metrics(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        return _exposed(await self._door().orchestrator(request.headers.get("Accept", "")))

    async def _discovery(self, request: web.BaseRequest, place: Place) -> web.StreamResponse:
        return _exposed(await self._door().discovery(request.headers.get("Host", "")))

    def _door(self) -> MetricsDoor:
        if self._metrics is None:
            raise Refusal(HTTPStatus.NOT_IMPLEMENTED, "this server has no metrics")
        return self._metrics

    async def _run(self, run_id: str) -> RunDirectory:
        """Raises Refusal."""
        found = await asyncio.to_thread(self._catalogue.find, run_id)
        if found is None:
            raise not_found("there is no such run")
        return found


def _wrong_method(allowed: list[str] | tuple[str, ...]) -> Refusal:
    allow = {"Allow": ", ".join(allowed)}
    return Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "this address is asked by another method", allow)


def _file(request: web.BaseRequest, asset: Asset) -> web.Response:
    headers = {"Vary": "Accept-Encoding", "Cache-Control": "no-cache"}
    if _takes_gzip(request):
        return binary(asset.compressed, asset.kind, headers | {"Content-Encoding": "gzip"})
    return binary(asset.data, asset.kind, headers)


def _exposed(exposition: Exposition) -> web.Response:
    return binary(exposition.data, exposition.content_type)


def _takes_gzip(request: web.BaseRequest) -> bool:
    offered = request.headers.get("Accept-Encoding", "")[:1000].split(",")
    return any(each.split(";")[0].strip().lower() == "gzip" for each in offered)


def _peer(request: web.BaseRequest) -> str:
    return request.remote or ""


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > _LONGEST_NUMBER:
        raise Refusal(HTTPStatus.BAD_REQUEST, "a frame is a number")
    return int(text)


async def _body(request: web.BaseRequest, kind: Checked[Any]) -> Any:
    """Returns the decoded body. Raises Refusal."""
    if request.content_type != "application/json":
        raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")
    try:
        async with asyncio.timeout(REQUEST_S):
            return kind.decode(await request.read())
    except web.HTTPRequestEntityTooLarge:
        raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is too large") from None
    except (Refused, web.HTTPException, ValueError, OSError):
        raise Refusal(HTTPStatus.BAD_REQUEST, "the body cannot be used") from None
