"""`rove enroll` against real sshd: what is shown, what is asked, what is recorded, and what never is."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from orchestrator.errors import BadInput
from orchestrator.ssh.host_keys import KnownHosts, known_hosts_file
from tests.ssh.conftest import Make
from tests.ssh.sshd import USER, SshServer


def topology(folder: Path, *servers: SshServer, **more: dict[str, Any]) -> Path:
    hosts = {
        server.name: {"host": server.address, "port": server.port, **more.get(server.name, {})}
        for server in servers
    }
    document = {
        "name": "lab",
        "nodes": [server.name for server in servers],
        "area": "100 m x 100 m",
        "mobility": {"model": "static", "grid": {"columns": 3, "spacing": "10 m"}},
        "defaults": {"user": USER, "key": str(servers[0].client_key)},
        "hosts": hosts,
    }
    path = folder / "lab.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def enroll(*arguments: str | Path, answers: str = "") -> Result:
    return CliRunner().invoke(app, ["enroll", *map(str, arguments)], input=answers)


@pytest.fixture(autouse=True)
def _own_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def recorded(server: SshServer) -> bool:
    return KnownHosts(known_hosts_file("lab")).key_of(server.name) == server.host_key


def test_keys_are_shown_asked_for_once_and_recorded(six: list[SshServer], tmp_path: Path) -> None:
    file = topology(tmp_path, *six)
    refused = enroll(file, answers="n\n")
    assert refused.exit_code == 1 and "Record these 6 keys?" in refused.output
    assert all(server.host_key.fingerprint in refused.output for server in six)
    assert not any(recorded(server) for server in six)
    silent = enroll(file)  # the end of the input is no consent
    assert silent.exit_code == 1 and "unconfirmed" in silent.output
    agreed = enroll(file, answers="y\n")
    assert agreed.exit_code == 0 and all(recorded(server) for server in six)
    again = enroll(file)
    assert again.exit_code == 0 and "Record" not in again.output


def test_a_fingerprint_that_is_stated_needs_no_question(six: list[SshServer], tmp_path: Path) -> None:
    first, second = six[:2]
    file = topology(tmp_path, first, second)
    wrong = enroll(file, "--json", "--fingerprint", f"{first.name}={second.host_key.fingerprint}", "--yes")
    assert wrong.exit_code == 1
    outcomes = {entry["host"]: entry for entry in json.loads(wrong.output)["hosts"]}
    assert outcomes[first.name]["outcome"] == "refused"
    assert outcomes[first.name]["reason"] == "this is not the fingerprint that was stated"
    assert outcomes[second.name]["outcome"] == "recorded"
    right = enroll(file, "--fingerprint", f"{first.name}={first.host_key.fingerprint}")
    assert right.exit_code == 0 and recorded(first)


def test_a_changed_key_is_not_taken_on_trust(make: Make, tmp_path: Path) -> None:
    server = make()
    file = topology(tmp_path, server)
    assert enroll(file, "--yes").exit_code == 0
    before = server.host_key.fingerprint
    server.renew_host_key()
    server.restart()
    trusting = enroll(file, "--yes", "--json")
    (entry,) = json.loads(trusting.output)["hosts"]
    assert (trusting.exit_code, entry["outcome"]) == (1, "unconfirmed")
    assert f"its key has changed (was {before})" in entry["reason"]
    assert not recorded(server)
    asked = enroll(file, answers="y\n")
    assert asked.exit_code == 0 and "CHANGED" in asked.output and recorded(server)


def test_who_is_off_is_told_apart_and_the_others_are_enrolled(make: Make, tmp_path: Path) -> None:
    on, off = make("on"), make("off")
    off.stop()
    result = enroll(topology(tmp_path, on, off), "--yes", "--json")
    outcomes = {entry["host"]: entry for entry in json.loads(result.output)["hosts"]}
    assert result.exit_code == 1
    assert outcomes["on"]["outcome"] == "recorded"
    assert outcomes["off"]["outcome"] == "unreachable" and "connection refused" in outcomes["off"]["reason"]


def test_what_is_behind_a_jump_host_is_enrolled_through_it(make: Make, tmp_path: Path) -> None:
    gateway, inner = make("gateway"), make("inner")
    jump = f"{USER}@{gateway.address}:{gateway.port}"
    file = topology(tmp_path, inner, inner={"jump": jump})
    result = enroll(file, answers="y\nn\n")  # the gateway, but not what is behind it
    assert result.exit_code == 1
    name = f"[{gateway.address}]:{gateway.port}"
    assert KnownHosts(known_hosts_file("lab")).key_of(name) == gateway.host_key
    assert not recorded(inner)
    assert enroll(file, "--yes").exit_code == 0 and recorded(inner)


def test_the_host_that_runs_core_is_enrolled_like_any_other(make: Make, tmp_path: Path) -> None:
    server = make("core")
    document = {
        "name": "lab",
        "nodes": 2,
        "area": "100 m x 100 m",
        "mobility": {"model": "static", "scatter": True},
        "core": {"host": server.address, "port": server.port, "user": USER},
    }
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(document))
    assert enroll(path, "--yes").exit_code == 0 and recorded(server)


def test_there_must_be_somebody(tmp_path: Path) -> None:
    path = tmp_path / "nobody.yaml"
    mobility = "{model: static, grid: {columns: 2, spacing: 5 m}}"
    path.write_text(f"name: nobody\nnodes: 2\narea: 10 m x 10 m\nmobility: {mobility}\n")
    result = enroll(path)
    assert isinstance(result.exception, BadInput)
    assert "this topology has neither hosts nor core" in str(result.exception)
