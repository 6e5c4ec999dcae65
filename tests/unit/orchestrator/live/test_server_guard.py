from collections.abc import Mapping
from http import HTTPStatus

import pytest

from orchestrator.live.server.access import MOST_SESSIONS, MOST_TRIES, MOST_TRIES_OF_ALL, Access, new_token
from orchestrator.live.server.answers import Refusal
from orchestrator.live.server.guard import Guard, place_of

pytestmark = pytest.mark.unit

HOST = "127.0.0.1:8470"


def guard(host: str = "127.0.0.1", token: str | None = None) -> Guard:
    return Guard(host, Access(token))


def status_of(
    headers: Mapping[str, str], method: str = "GET", host: str = "127.0.0.1", top: bool = False
) -> int:
    try:
        guard(host).check(method, headers, top)
    except Refusal as refusal:
        return int(refusal.status)
    return 200


@pytest.mark.parametrize(
    "name", ["127.0.0.1:8470", "localhost", "localhost:1", "[::1]:8470", "LOCALHOST:80", "127.3.2.1"]
)
def test_names_of_this_machine_are_known(name: str) -> None:
    assert status_of({"Host": name}) == 200


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example:80", "10.0.0.7", "localhost.evil"])
def test_a_name_that_somebody_else_chose_is_refused(name: str) -> None:
    assert status_of({"Host": name}) == HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize(
    "name", ["", "a b", "localhost:999999", "[", "user@localhost", "localhost\x00", "a" * 300]
)
def test_a_malformed_host_is_refused(name: str) -> None:
    assert status_of({"Host": name}) == HTTPStatus.BAD_REQUEST


def test_a_server_on_every_address_is_known_by_addresses_and_not_by_foreign_names() -> None:
    assert status_of({"Host": "192.168.1.7:8470"}, host="0.0.0.0") == 200
    assert status_of({"Host": "evil.example"}, host="0.0.0.0") == HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize("site", ["cross-site", "same-site", "whatever"])
def test_other_sites_may_not_ask(site: str) -> None:
    assert status_of({"Host": HOST, "Sec-Fetch-Site": site}) == HTTPStatus.FORBIDDEN


def test_a_link_of_another_site_may_lead_to_the_page() -> None:
    followed = {"Host": HOST, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert status_of(followed, top=True) == 200
    assert status_of(followed) == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost:8470"]
)
def test_a_foreign_origin_is_refused(origin: str) -> None:
    for method in ("GET", "POST"):
        assert status_of({"Host": HOST, "Origin": origin}, method) == HTTPStatus.FORBIDDEN


def test_changes_need_an_origin() -> None:
    assert status_of({"Host": HOST}, "POST") == HTTPStatus.FORBIDDEN
    assert status_of({"Host": HOST, "Origin": f"http://{HOST}"}, "POST") == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "", "G\x00"])
def test_other_methods_are_refused(method: str) -> None:
    assert status_of({"Host": HOST}, method) == HTTPStatus.METHOD_NOT_ALLOWED


def test_parts_of_a_path_are_decoded_once() -> None:
    assert place_of("/api/runs/a%2Fb/x?after=1&y").parts == ("api", "runs", "a/b", "x")
    assert place_of("/%252e").parts == ("%2e",)
    assert place_of("/").parts == ()
    assert place_of("/a?after=7").query == {"after": "7"}


@pytest.mark.parametrize(
    "path",
    ["", "x", "http://evil/", "/%00", "/%ff", "/\u202e", "/" + "a" * 300, "/?" + "a=b&" * 20, "/" + "a/" * 9],
)
def test_a_path_that_no_page_asks_for_is_refused(path: str) -> None:
    with pytest.raises(Refusal):
        place_of(path)


def test_the_token_is_compared_and_failures_are_counted() -> None:
    clock = [0.0]
    token = new_token()
    access = Access(token, lambda: clock[0])
    keeper = Guard("0.0.0.0", access)
    right = {"Authorization": f"Bearer {token}"}
    keeper.admit("a", right, "")

    def wrong_by(peer: str) -> HTTPStatus:
        return status_for(keeper, peer, "wrong")

    assert {wrong_by("a") for _ in range(MOST_TRIES)} == {HTTPStatus.UNAUTHORIZED}
    assert wrong_by("a") == HTTPStatus.TOO_MANY_REQUESTS
    keeper.admit("a", right, "")  # all users of a machine have one address: who has the token is not to blame
    assert wrong_by("b") == HTTPStatus.UNAUTHORIZED  # nor is another peer
    clock[0] = 61.0
    assert wrong_by("a") == HTTPStatus.UNAUTHORIZED


def test_wrong_tokens_of_many_peers_do_not_keep_out_the_right_one() -> None:
    token = new_token()
    keeper = Guard("0.0.0.0", Access(token, lambda: 0.0))
    found = [status_for(keeper, f"p{number}", "wrong") for number in range(MOST_TRIES_OF_ALL + 1)]
    assert found[-2:] == [HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS]
    assert status_for(keeper, "p1", token) == HTTPStatus.OK


def status_for(keeper: Guard, peer: str, token: str) -> HTTPStatus:
    try:
        keeper.admit(peer, {"Authorization": f"Bearer {token}"}, "")
    except Refusal as refusal:
        return refusal.status
    return HTTPStatus.OK


def test_without_a_token_a_request_is_not_admitted() -> None:
    for headers in (
        {},
        {"Authorization": "Basic abc"},
        {"Authorization": "Bearer "},
        {"Authorization": "x" * 999},
    ):
        with pytest.raises(Refusal) as refused:
            guard("0.0.0.0", "a" * 20).admit("a", headers, "")
        assert refused.value.status == HTTPStatus.UNAUTHORIZED


def test_sessions_are_bounded() -> None:
    access = Access("a" * 20)
    first = access.open_session()
    assert access.in_session(first)
    assert not access.in_session("")
    for _ in range(MOST_SESSIONS):
        last = access.open_session()
    assert not access.in_session(first)
    assert access.in_session(last)
