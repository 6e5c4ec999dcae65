"""Nodes that are real OpenSSH servers: each in its own namespaces, with an unprivileged user, and own keys.

Nothing of the machine's accounts, sshd or keys is used or changed: /etc/passwd, /home, /run are the node's.
Stopping one ends everything that was started over it.
"""

import base64
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from orchestrator.spec.inventory import Host
from orchestrator.ssh.host_keys import HostKey, KnownHosts

USER = "pi"
FIRST_ID = 21000
HOME = f"/home/{USER}"
_READY_S = 10.0
_ACCOUNTS = {
    "passwd": f"{USER}:x:{FIRST_ID}:{FIRST_ID}::{HOME}:/bin/sh\n",
    "group": f"{USER}:x:{FIRST_ID}:\n",
}
"""Added to those of the machine."""
_SUDOERS = """\
Defaults env_reset, secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
root ALL=(ALL:ALL) ALL
"""
"""As Debian has it."""
_PASSWORDS = "".join(f"{user}:*:19000:0:99999:7:::\n" for user in ("root", USER))


def _byte() -> int:
    return 2 + secrets.randbelow(250)


def find_sshd() -> str | None:
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def lacking() -> str | None:
    """Why there can be no servers on this machine."""
    if find_sshd() is None or shutil.which("ssh-keygen") is None:
        return "needs OpenSSH's server"
    return None if os.geteuid() == 0 else "needs root"


def new_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A key pair; the path of its private half."""
    for old in (path, path.with_suffix(".pub")):
        old.unlink(missing_ok=True)
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", str(path)]
    subprocess.run(command, check=True, timeout=30)
    return path


@dataclass
class SshServer:
    """``network``: the path of a network namespace to listen in. ``mounts``: what else it sees, and where.

    With ``disk`` the user's home is a disk of so many bytes; it can then be seen only from inside.
    """

    name: str
    folder: Path
    client_key: Path
    address: str = field(default_factory=lambda: f"127.{_byte()}.{_byte()}.{_byte()}")
    """One of the loopback network, but not the one that everybody uses: ports of that may be taken."""
    port: int = 2222
    network: Path | None = None
    sudo: bool = False
    disk: int | None = None
    mounts: Mapping[Path, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    """More lines of sshd_config, before all others."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of sshd itself; what it starts for users does not see it."""
    _process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.home = self.folder / "home"
        self.home.mkdir()
        os.chown(self.home, FIRST_ID, FIRST_ID)
        self.renew_host_key()

    @property
    def host(self) -> Host:
        return Host(self.name, self.address, self.port, USER, str(self.client_key))

    @property
    def host_key(self) -> HostKey:
        kind, encoded = (self.folder / "host_key.pub").read_text().split()[:2]
        return HostKey(kind, base64.b64decode(encoded))

    def renew_host_key(self, kind: str = "ed25519") -> None:
        """Takes effect at the next start."""
        new_key(self.folder / "host_key", kind)

    def start(self) -> None:
        self._write_files()
        entering = ["nsenter", f"--net={self.network}"] if self.network else []
        apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
        with (self.folder / "sshd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*entering, *apart, "--mount-proc", "sh", "-e", str(self.folder / "enter.sh")],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Until the process has begun to listen, which the kernel tells also of another network namespace."""
        deadline = time.monotonic() + _READY_S
        while not (self.folder / "listening").exists():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"sshd did not start: {(self.folder / 'sshd.log').read_text()}")
            self._look()
            time.sleep(0.01)

    def stop(self) -> None:
        """As if the power were cut: everything that runs there is gone, too. May be repeated."""
        if self._process is not None:
            try:
                os.kill(self._top(), signal.SIGKILL)  # and with it all of its namespace
            except (OSError, IndexError):  # it has none yet, or is gone
                self._process.kill()
            self._process.wait(10)
            self._process = None
        (self.folder / "listening").unlink(missing_ok=True)

    def restart(self) -> None:
        self.stop()
        self.start()
        self.wait_ready()

    def suspend(self) -> None:
        """It hangs: connections are accepted by the kernel, and nobody speaks."""
        stopped: list[int] = []
        while more := [pid for pid in self.processes() if pid not in stopped]:
            for pid in more:  # one that forked meanwhile has a child to stop yet
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            for pid in more:
                _wait_until_stopped(pid)
            stopped += more

    def resume(self) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):  # as a session's shell, which goes on and ends before its turn
                os.kill(pid, signal.SIGCONT)

    def cut(self) -> None:
        """Every connection ends; new ones are accepted."""
        for pid in self.processes()[1:]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """All that run on the node, sshd first."""
        top = self._top()
        own = Path(f"/proc/{top}/ns/pid").readlink()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if (entry / "ns" / "pid").readlink() == own:
                        found.append(int(entry.name))
        return [top, *sorted(pid for pid in found if pid != top)]

    def command_lines(self) -> dict[int, bytes]:
        """Of all that run on the node and have not ended meanwhile, with NUL between words."""
        lines = {}
        for pid in self.processes():
            with suppress(OSError):
                lines[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
        return lines

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "not started"
        return self._process

    def _top(self) -> int:
        """The node's process 1."""
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def _look(self) -> None:
        with suppress(OSError, IndexError):
            sockets = Path(f"/proc/{self._top()}/net/tcp").read_text().splitlines()[1:]
            listening = [line.split()[1] for line in sockets if line.split()[3] == "0A"]
            address = int.from_bytes(IPv4Address(self.address).packed, sys.byteorder)
            if f"{address:08X}:{self.port:04X}" in listening:
                (self.folder / "listening").touch()

    def _write_files(self) -> None:
        sshd = find_sshd()
        assert sshd is not None
        config = [
            *self.settings,
            f"ListenAddress {self.address}:{self.port}",
            f"HostKey {self.folder}/host_key",
            "AuthorizedKeysFile /run/authorized_keys",
            "PidFile none",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "UsePAM no",
            "UseDNS no",
            "StrictModes no",
            "MaxStartups 200",
            "Subsystem sftp internal-sftp",
        ]
        (self.folder / "sshd_config").write_text("\n".join(config) + "\n")
        for name, line in _ACCOUNTS.items():
            (self.folder / name).write_text(Path("/etc", name).read_text() + line)
        rules = _SUDOERS + f"{USER} ALL=(ALL) NOPASSWD: ALL\n" * self.sudo
        for name, text in (("shadow", _PASSWORDS), ("sudoers", rules)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o440)
        (self.folder / "enter.sh").write_text("".join(f"{line}\n" for line in self._script(sshd)))

    def _script(self, sshd: str) -> Iterator[str]:
        for name in (*_ACCOUNTS, "shadow", "sudoers"):
            if Path("/etc", name).exists():
                yield shlex.join(["mount", "--bind", str(self.folder / name), f"/etc/{name}"])
        if self.network is not None:  # else the links of the machine's own network would be seen there
            yield "mount -t sysfs sysfs /sys"
        yield "mount -t tmpfs tmpfs /home"
        yield "mount -t tmpfs -o mode=755 tmpfs /run"
        yield f"mkdir /run/sshd {HOME}"
        if self.disk is None:
            yield shlex.join(["mount", "--bind", str(self.home), HOME])
        else:
            yield f"mount -t tmpfs -o size={self.disk},uid={FIRST_ID},gid={FIRST_ID},mode=755 tmpfs {HOME}"
        for source, target in self.mounts.items():
            yield shlex.join(["mkdir", "-p", target])
            yield shlex.join(["mount", "--rbind", str(source), target])
        yield shlex.join(["install", "-m", "644", f"{self.client_key}.pub", "/run/authorized_keys"])
        yield shlex.join(["exec", sshd, "-D", "-e", "-f", str(self.folder / "sshd_config")])


def known_hosts(path: Path, *servers: SshServer) -> KnownHosts:
    known = KnownHosts(path)
    for server in servers:
        known.record(server.name, server.host_key)
    return known


def _wait_until_stopped(pid: int) -> None:
    """A process may go on for a moment after the signal, on another processor."""
    deadline = time.monotonic() + 5
    with suppress(OSError):
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "TtZX":
            assert time.monotonic() < deadline, f"process {pid} does not stop"
            time.sleep(0.001)


@contextmanager
def running(*servers: SshServer) -> Iterator[None]:
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait_ready()
        yield
    finally:
        for server in servers:
            server.stop()
