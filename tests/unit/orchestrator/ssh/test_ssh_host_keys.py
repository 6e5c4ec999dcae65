"""Which key each host was enrolled with: the file, and what is said of hosts that are not in it."""

import stat
import subprocess
from pathlib import Path

import pytest

from orchestrator.errors import BadInput
from orchestrator.ssh.errors import HostKeyChanged, HostKeyUnknown
from orchestrator.ssh.host_keys import HostKey, KnownHosts, known_hosts_file

ONE = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(range(32)))
OTHER = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(32))


def test_what_is_recorded_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "known"
    known = KnownHosts(path)
    assert known.key_of("n01") is None
    known.record("n01", ONE)
    known.record("[gw]:2222", OTHER)
    known.record("n01", OTHER)
    again = KnownHosts(path)
    assert (again.key_of("n01"), again.key_of("[gw]:2222")) == (OTHER, OTHER)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["known"]


def test_openssh_reads_the_file_and_agrees_on_fingerprints(tmp_path: Path) -> None:
    KnownHosts(tmp_path / "known").record("n01", ONE)
    command = ["ssh-keygen", "-l", "-F", "n01", "-f", str(tmp_path / "known")]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
    except FileNotFoundError:
        pytest.skip("needs OpenSSH's client")
    assert ONE.fingerprint in told


def test_a_host_that_is_unknown_or_has_changed(tmp_path: Path) -> None:
    known = KnownHosts(tmp_path / "known")
    with pytest.raises(HostKeyUnknown, match="n01: its host key is not known yet: rove enroll TOPOLOGY"):
        known.check("n01", ONE)
    known.record("n01", ONE)
    known.check("n01", ONE)
    with pytest.raises(HostKeyChanged) as raised:
        known.check("n01", OTHER)
    assert ONE.fingerprint in raised.value.reason and OTHER.fingerprint in raised.value.reason
    assert (raised.value.host, str(raised.value)) == ("n01", f"n01: {raised.value.reason}")


@pytest.mark.parametrize("line", ["n01", "n01 ssh-ed25519", "n01 ssh-ed25519 ###"])
def test_a_damaged_file_is_named_with_its_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "known"
    path.write_text(f"# comment\n\n{line}\n")
    with pytest.raises(BadInput, match=r"known, line 3: not a host key \(name, type, key\)"):
        KnownHosts(path)


def test_each_topology_has_its_file_in_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert known_hosts_file("lab") == tmp_path / "rove" / "known_hosts" / "lab"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert known_hosts_file("lab") == tmp_path / ".local/share/rove/known_hosts/lab"
