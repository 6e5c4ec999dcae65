"""What a node says about itself chooses no path here, makes no command odd, and costs no memory."""

import json
from typing import Any

import pytest

from node_agent.host.setup.facts import FactsError
from node_agent.host.setup.facts import read_facts as read_link
from node_agent.model.checked import Refused
from orchestrator.deployment.bundle import own_package
from orchestrator.deployment.facts import read_facts
from orchestrator.deployment.needs import MSGSPEC

TOLD: dict[str, Any] = {
    "python": "/usr/bin/python3",
    "version": [3, 11, 2],
    "machine": "aarch64",
    "system": "linux",
    "libc": "glibc",
    "libc_version": [2, 36],
    "home": "/home/pi",
    "packages": {"msgspec": "0.99.0"},
    "sites": {"msgspec": "/usr/lib/python3/dist-packages"},
    "implementation": "cpython",
    "abiflags": "",
}


def told(**changes: Any) -> bytes:
    return json.dumps({**TOLD, **changes}).encode()


def test_facts_are_read() -> None:
    facts = read_facts("n1", told())
    assert (facts.version, facts.libc_version, facts.rove) == ((3, 11, 2), (2, 36), "/home/pi/.rove")


@pytest.mark.parametrize(
    "changes",
    [
        {"libc_version": [2, 10**9]},
        {"version": [3, 10**400, 0]},
        {"version": [3, 11]},
        {"machine": "x86_64 --index-url http://192.0.2.1"},
        {"machine": "../../x"},
        {"home": "relative"},
        {"home": "/home/pi\nroot"},
        {"python": "-c"},
        {"system": "linux\x1b[2J"},
        {"host": "n2"},
        {"packages": ["msgspec"]},
        {"sites": {"x": "y" * 2_000_000}},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_facts_that_cannot_be_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        read_facts("n1", told(**changes))


@pytest.mark.parametrize("said", [b"[" * 100_000, b'{"python": ' + b"[" * 100_000, b"\xff", b"null"])
def test_what_are_no_facts_are_refused(said: bytes) -> None:
    with pytest.raises(Refused):
        read_facts("n1", said)


def test_a_version_that_is_none_fits_nothing() -> None:
    assert own_package(read_facts("n1", told()), MSGSPEC) is not None
    for odd in (told(packages={"msgspec": "; rm -rf /"}), told(sites={})):
        assert own_package(read_facts("n1", odd), MSGSPEC) is None


@pytest.mark.parametrize("address", ["dc:a6:32:01:02:03; drop", "dc:a6:32", "", "dc:a6:32:01:02:03:04"])
def test_a_hardware_address_must_be_one_as_other_nodes_make_rules_with_it(address: str) -> None:
    link = {"ifname": "wlan0", "flags": ["UP"], "addr_info": [], "address": "DC:A6:32:01:02:03"}
    assert read_link(json.dumps([link])).hardware == "dc:a6:32:01:02:03"
    with pytest.raises(FactsError):
        read_link(json.dumps([{**link, "address": address}]))
    with pytest.raises(FactsError):
        read_link("[" * 100_000)
