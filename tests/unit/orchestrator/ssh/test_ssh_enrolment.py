"""Whose key is believed: pure decisions of enrolment."""

import pytest

from orchestrator.errors import BadInput
from orchestrator.spec.inventory import Host
from orchestrator.ssh.enrolment import Outcome, Presented, Statement, by_distance, judge
from orchestrator.ssh.host_keys import HostKey

HOST = Host("n01", "10.0.0.5", 22, "pi")
KEY, OTHER = HostKey("ssh-ed25519", b"one"), HostKey("ssh-ed25519", b"two")
NOTHING = Statement()
OWN = Statement({"n01": KEY.fingerprint})
ANYONE = Statement({}, frozenset({KEY.fingerprint}))
ANOTHERS = Statement({"n02": OTHER.fingerprint})


@pytest.mark.parametrize(
    ("presented", "recorded", "statement", "trusting", "outcome"),
    [
        (KEY, None, NOTHING, False, Outcome.UNCONFIRMED),
        (KEY, None, NOTHING, True, Outcome.RECORDED),
        (KEY, KEY, NOTHING, False, Outcome.KNOWN),
        (OTHER, KEY, NOTHING, False, Outcome.UNCONFIRMED),
        (OTHER, KEY, NOTHING, True, Outcome.UNCONFIRMED),  # a changed key is never taken on trust
        (KEY, None, OWN, False, Outcome.RECORDED),
        (KEY, None, ANYONE, False, Outcome.RECORDED),
        (KEY, OTHER, OWN, False, Outcome.RECORDED),
        (KEY, KEY, OWN, False, Outcome.KNOWN),
        (OTHER, None, OWN, True, Outcome.REFUSED),
        (OTHER, OTHER, OWN, True, Outcome.REFUSED),
        (OTHER, None, ANYONE, True, Outcome.REFUSED),
        (KEY, None, ANOTHERS, False, Outcome.UNCONFIRMED),
    ],
)
def test_judgement(
    presented: HostKey, recorded: HostKey | None, statement: Statement, trusting: bool, outcome: Outcome
) -> None:
    assert judge(Presented(HOST, presented, recorded), statement, trusting) is outcome


def test_statements_are_read() -> None:
    written = [f"n01={KEY.fingerprint}", OTHER.fingerprint, f"[gw]:2222={OTHER.fingerprint}"]
    statement = Statement.read(written, ["n01", "n02", "[gw]:2222"])
    assert statement.about("n01") == {KEY.fingerprint}
    assert statement.about("[gw]:2222") == {OTHER.fingerprint}
    assert statement.about("n02") == {OTHER.fingerprint}


@pytest.mark.parametrize("text", ["", "SHA256:short", "MD5:00:11", f"n01={KEY.fingerprint}x", "n01=", "n01"])
def test_what_is_no_fingerprint(text: str) -> None:
    with pytest.raises(BadInput, match=r"--fingerprint .*: not a fingerprint like SHA256"):
        Statement.read([text], ["n01"])


def test_a_fingerprint_of_nobody() -> None:
    with pytest.raises(BadInput, match="there is no host n09 to enrol"):
        Statement.read([f"n09={KEY.fingerprint}"], ["n01"])


def test_jump_hosts_come_before_what_is_behind_them_and_only_once() -> None:
    gateway = Host("gw", "gw", 22, "pi")
    inner = Host("inner", "inner", 22, "pi", jump=gateway)
    hosts = [
        Host(name, name, 22, "pi", jump=jump) for name, jump in (("a", inner), ("b", gateway), ("c", None))
    ]
    assert [[host.name for host in level] for level in by_distance(hosts)] == [
        ["gw", "c"],
        ["inner", "b"],
        ["a"],
    ]
