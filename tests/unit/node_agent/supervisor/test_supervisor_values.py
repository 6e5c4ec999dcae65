"""What a supervisor decides without doing anything: orders, leases, and how programs are called."""

import os
import socket
import sys
from pathlib import Path

import msgspec
import pytest

from node_agent.agent.control import Request, Start
from node_agent.agent.control_lines import encode
from node_agent.model.checked import Refused
from node_agent.supervisor import PROTOCOL
from node_agent.supervisor.bridge import is_own
from node_agent.supervisor.commands import AskClock, End, Renew
from node_agent.supervisor.lease import Lease, is_term
from node_agent.supervisor.order import BadOrder, Program, SupervisorOrder, decode_order, read_order
from node_agent.supervisor.owner import read_envelope, read_request
from node_agent.supervisor.place import NotPrivate, require_private
from node_agent.supervisor.programs import Log, explained, with_lifeline, with_rights

AGENT = Program("agent", ("python3", "-m", "node_agent.agent"), "agent.log")
ORDER = SupervisorOrder("run", "n1", PROTOCOL, 60.0, None, (), AGENT)


def test_an_order_is_read_as_it_was_written(tmp_path: Path) -> None:
    setup = Program("set-up", ("setup",), "setup.log", privileged=True)
    order = msgspec.structs.replace(ORDER, setup=setup, services=(Program("olsr", ("olsr",), "routing.log"),))
    (tmp_path / "order.json").write_bytes(msgspec.json.encode(order))
    assert read_order(tmp_path) == order


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"run": ""}, "run is empty"),
        ({"lease": 0.0}, "lease: 0 s"),
        ({"agent": Program("agent", (), "agent.log")}, "agent: argv is empty"),
        ({"agent": Program("agent", ("x",), "../agent.log")}, "agent: log must be the name of a file"),
        ({"agent": Program("agent", ("x",), "agent.log", privileged=True)}, "agent: it runs with the user's"),
    ],
)
def test_an_order_that_cannot_be_kept_is_refused(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadOrder, match=complaint):
        decode_order(msgspec.json.encode(msgspec.structs.replace(ORDER, **change)))


def test_all_that_is_wrong_with_an_order_is_said_at_once() -> None:
    with pytest.raises(BadOrder, match=r"node is empty; lease: -1 s"):
        decode_order(msgspec.json.encode(msgspec.structs.replace(ORDER, node="", lease=-1.0)))


def test_another_version_is_named_before_anything_else_is_read() -> None:
    with pytest.raises(BadOrder, match=rf"version {PROTOCOL + 1} .* this node {PROTOCOL}: deploy"):
        decode_order(b'{"protocol": %d, "something": "new"}' % (PROTOCOL + 1))


@pytest.mark.parametrize("written", [b"", b"{", b"[]", b'{"protocol": 1}', b'{"protocol": "1"}'])
def test_what_is_no_order_is_refused(written: bytes, tmp_path: Path) -> None:
    (tmp_path / "order.json").write_bytes(written)
    with pytest.raises(BadOrder, match=r"order\.json: "):
        read_order(tmp_path)


def test_no_order_at_all(tmp_path: Path) -> None:
    with pytest.raises(BadOrder, match="No such file"):
        read_order(tmp_path)


def test_a_lease_ends_unless_it_is_renewed() -> None:
    lease = Lease(100.0)
    assert not lease.is_over(99.9) and lease.is_over(100.0)
    assert lease.left(40.0) == 60.0 and lease.left(200.0) == 0.0
    renewed = lease.renewed(99.0, 60.0)
    assert not renewed.is_over(158.9) and renewed.is_over(159.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_no_lease_is_for_ever_or_over_before_it_begins(seconds: float) -> None:
    assert not is_term(seconds)


def test_root_is_asked_for_only_where_it_is_needed_and_not_had() -> None:
    environment = {"PYTHONPATH": "/lib", "PYTHONSAFEPATH": "1", "ROVE_RUN": "r", "HOME": "/home/pi"}
    assert with_rights(["ip"], False, environment, 1000) == ["ip"]
    assert with_rights(["ip"], True, environment, 0) == ["ip"]
    through_sudo = [
        "sudo",
        "-n",
        "--",
        "env",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONPATH=/lib",
        "PYTHONSAFEPATH=1",
        "ROVE_RUN=r",
        "ip",
    ]
    assert with_rights(["ip"], True, environment, 1000) == through_sudo


def test_a_program_with_a_lifeline_keeps_its_arguments() -> None:
    assert with_lifeline(["a", "--b"]) == [
        sys.executable,
        "-m",
        "node_agent.supervisor.lifeline",
        "--",
        "a",
        "--b",
    ]


def test_a_supervisor_sees_whom_a_line_is_for() -> None:
    assert read_envelope(encode(Request(Start(), 7))).do.do == "start"
    assert read_envelope(encode(Request(Start(), 7))).id == 7
    for command in (AskClock(), Renew(5.0), End("enough")):
        assert read_request(encode(Request(command, 3))) == Request(command, 3)


def test_an_end_is_explained_by_the_last_words_of_this_start(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    file.write_text("of the start before\n")
    log = Log(file)
    assert explained("olsr", 1, log) == "olsr ended with status 1"
    with file.open("a") as more:
        more.write("flood\n" * 100_000 + "no such interface\n\n")
    assert explained("olsr", 1, log) == "olsr ended with status 1: no such interface"
    assert explained("olsr", -9, log) == "olsr was ended by SIGKILL"


def test_a_place_must_be_the_users_alone(tmp_path: Path) -> None:
    """Whoever can write there could give orders, and whoever can read there has the run's key."""
    place = tmp_path / "place"
    place.mkdir(mode=0o700)
    require_private(place)
    place.chmod(0o750)
    with pytest.raises(NotPrivate, match="other users have rights to it: chmod 700"):
        require_private(place)
    place.chmod(0o700)
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(NotPrivate, match="not a directory of this user"):
        require_private(tmp_path / "link")
    if os.geteuid() == 0:
        os.chown(place, 12345, 12345)
        with pytest.raises(NotPrivate, match="not a directory of this user"):
            require_private(place)


def test_only_this_user_and_root_may_be_at_the_other_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_own(ours)
        if (user := os.geteuid()) != 0:
            monkeypatch.setattr(os, "geteuid", lambda: user + 1)
            assert not is_own(ours)


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"do": {"do": "end", "x": ' + b"[" * 100_000, b"\xff\n"])
def test_no_line_is_too_odd_for_a_supervisor(line: bytes) -> None:
    for read in (read_envelope, read_request):
        with pytest.raises(Refused):
            read(line)
