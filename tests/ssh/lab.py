"""A laboratory: six nodes that are real OpenSSH servers, with ``wlan0`` on the emulated radio.

Commands and files go over a control network, the query over the radio, as with Raspberry Pis on a table.
Nodes can be switched off, hang, be cut off, run out of disk; ``leftovers`` says what a run did not tidy.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from orchestrator.backends.netns import names, network
from orchestrator.backends.netns.layout import CONTROL_LINK, RADIO_LINK
from orchestrator.backends.netns.marks import CONTROL
from orchestrator.ssh.host_keys import KnownHosts
from tests.ssh.air import inside, mark_of
from tests.ssh.sshd import FIRST_ID, HOME, USER, SshServer, new_key, running

ROOT = Path(__file__).parents[2]
NAME = "lab"
NODES = tuple(f"n{number:02}" for number in range(1, 7))
PATIENCE_S = 90.0
_RADIO = {
    "area": "600 m x 400 m",
    # Two rows of three: whichever node is lost, the others still reach one another.
    "mobility": {"model": "static", "grid": {"columns": 3, "spacing": "200 m"}},
    "radio": {"model": "disc", "range": "250 m", "bandwidth": "11 Mb/s", "latency": "1 ms"},
}
_SWITCHES = ("ipv4/ip_forward", *(f"ipv4/conf/{link}/{key}" for link in ("all", RADIO_LINK)
                                  for key in ("rp_filter", "send_redirects")))  # fmt: skip
_LOOK = (
    f"ip -o addr show dev {RADIO_LINK}",
    f"ip -o link show dev {RADIO_LINK}",
    f"ip route show table all dev {RADIO_LINK}",
    f"ip neigh show dev {RADIO_LINK} nud permanent",
    "ip rule show",
    f"tc qdisc show dev {RADIO_LINK}",
    *(["nft list ruleset"] if shutil.which("nft") else []),
    *(f"echo {key} $(cat /proc/sys/net/{key})" for key in _SWITCHES),
)

EXPERIMENT: dict[str, Any] = {
    "name": "drill",
    "backend": "ssh",
    "routing": {"protocol": "olsr", "hello": "300 ms", "tc": "300 ms"},
    "query": {
        "operators": {
            "camera": {"kind": "synthetic_source", "rate": "5 fps", "payload": "200 B"},
            "work": {"kind": "work", "after": "camera", "cpu": "1 ms"},
            "screen": {"kind": "sink", "after": "work"},
        }
    },
    "placement": {
        "policy": "explicit",
        "nodes": {"camera": ["n01"], "work": ["n02"], "screen": ["n03"]},
    },
    # A busy machine answers late, and drills are about other things.
    "clocks": {"uncertainty": "1s"},
    "load": {"waited": 1.0, "late": "10s"},
    "warmup": "1s",
    "duration": "2s",
    "seed": 1,
}


@dataclass
class LabNode:
    name: str
    address: str
    """Over the radio."""
    namespace: Path
    plug: tuple[Path, str]
    """Where its cable of the control network ends: in which namespace, and in which link."""
    server: SshServer
    is_on: bool = True
    _booted: list[str] = field(default_factory=list)

    def switched_on(self) -> None:
        """What the network is like now is what runs are to leave."""
        self._booted = self.network()

    def processes(self) -> list[str]:
        """The command lines of all that runs there, sshd aside."""
        if not self.is_on:
            return []
        return [line for pid in self.server.processes() if (line := _command_line(pid)) and not _is_sshd(pid)]

    def network(self) -> list[str]:
        """All that a run might change, a line each."""
        script = "; ".join(_LOOK)
        command = inside(self.namespace, "sh", "-c", script)
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)
        return [line.strip() for line in done.stdout.splitlines()]

    @property
    def home(self) -> Path:
        """The user's home as the node sees it, whatever is mounted there; only while it is on."""
        return Path(f"/proc/{self.server.processes()[0]}/root{HOME}")

    @property
    def runs(self) -> list[str]:
        """What runs have left in their directories, relative to ``~/.rove/runs``."""
        top = self.home / ".rove" / "runs"
        return sorted(str(path.relative_to(top)) for path in top.rglob("*") if not path.is_dir())

    def leftovers(self) -> list[str]:
        now = self.network()
        found = [f"process {line}" for line in self.processes()]
        if self.is_on:
            top = self.home
            found += [f"file {path.name}" for path in sorted(top.iterdir()) if path.name != ".rove"]
            found += [f"file .rove/runs/{path}" for path in self.runs]
        found += [f"network + {line}" for line in now if line not in self._booted]
        found += [f"network - {line}" for line in self._booted if line not in now]
        return [f"{self.name}: {what}" for what in found]

    def write(self, path: Path, content: bytes) -> None:
        """A file that the node's user might have written."""
        path.write_bytes(content)
        os.chown(path, FIRST_ID, FIRST_ID)

    # Troubles, and their ends.

    def hang(self) -> None:
        """sshd and its sessions stand still: connections are accepted by the kernel, and nobody speaks."""
        for pid in self._sshd():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in self._sshd():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        self.hang()
        try:
            yield
        finally:
            self.resume()

    def kill(self, *words: str, number: int = signal.SIGKILL) -> None:
        """Without a warning, or with another signal, what has these words in its command line."""
        for pid in self.server.processes():
            if set(words) <= set(shlex.split(_command_line(pid))):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def cut(self) -> None:
        """Every SSH connection ends; what was started over them stays, and new ones are accepted."""
        for pid in self._sshd()[1:]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @contextmanager
    def small_disk(self, size: int) -> Iterator[Path]:
        """The user's home is an empty disk of so many bytes; where to see it from outside."""
        options = f"size={size},uid={FIRST_ID},gid={FIRST_ID},mode=755"
        self._in_mounts("mount", "-t", "tmpfs", "-o", options, "tmpfs", HOME)
        try:
            yield self.home
        finally:
            self._in_mounts("umount", "--lazy", HOME)

    @contextmanager
    def instead_of(self, file: str, fake: Path) -> Iterator[None]:
        """Another file in the place of one of the node's."""
        self._in_mounts("mount", "--bind", str(fake), file)
        try:
            yield
        finally:
            self._in_mounts("umount", "--lazy", file)

    @contextmanager
    def without_sudo(self) -> Iterator[None]:
        rules = self.server.folder / "sudoers"
        before = rules.read_text()
        rules.write_text("".join(line for line in before.splitlines(True) if not line.startswith(USER)))
        try:
            yield
        finally:
            rules.write_text(before)

    @contextmanager
    def other_host_key(self) -> Iterator[None]:
        """As if it had been set up anew, or were another machine."""
        files = [self.server.folder / name for name in ("host_key", "host_key.pub")]
        before = [file.read_bytes() for file in files]
        self.server.renew_host_key()
        self.server.restart()
        try:
            yield
        finally:
            for file, content in zip(files, before, strict=True):
                file.write_bytes(content)
            self.server.restart()

    @contextmanager
    def slow_cable(self, rate: str) -> Iterator[None]:
        """Both ways, of the control network."""
        ends = ((self.namespace, CONTROL_LINK), self.plug)
        try:
            for namespace, link in ends:
                shaping = f"tc qdisc add dev {link} root tbf rate {rate} burst 4kb latency 1s".split()
                subprocess.run(inside(namespace, *shaping), check=True, capture_output=True, timeout=20)
            yield
        finally:
            for namespace, link in ends:
                plain = f"tc qdisc del dev {link} root".split()
                subprocess.run(inside(namespace, *plain), capture_output=True, timeout=20)

    def pull_cable(self) -> None:
        """From the control network: packets go nowhere, and nobody is told."""
        self._ip(f"link set {CONTROL_LINK} down")

    def plug_cable(self) -> None:
        self._ip(f"link set {CONTROL_LINK} up")

    def power_off(self) -> None:
        """Everything that ran is gone at once, and no connection is told. The disk stays."""
        self.pull_cable()
        self.server.stop()
        self.is_on = False

    def power_on(self) -> None:
        """With its network as it was when it was first switched on."""
        neighbours = [line for line in self._booted if line.endswith("PERMANENT")]
        link = f"dev {RADIO_LINK}"
        commands = [
            f"ip link set {link} down",
            f"tc qdisc del {link} root 2>/dev/null || true",
            *(["nft flush ruleset"] if shutil.which("nft") else []),
            f"ip addr flush {link}",
            f"ip addr add {self.address}/32 {link}",
            f"ip link set {link} up",
            *(f"ip neigh replace {line.replace('PERMANENT', 'nud permanent')} {link}" for line in neighbours),
            *(
                f"echo {line.split()[1]} > /proc/sys/net/{line.split()[0]}"
                for line in self._booted
                if line.startswith(_SWITCHES)
            ),
        ]
        command = inside(self.namespace, "sh", "-e", "-c", "\n".join(commands))
        subprocess.run(command, check=True, capture_output=True, timeout=20)
        self.plug_cable()
        self.server.start()
        self.server.wait_ready()
        self.is_on = True

    def wipe(self) -> None:
        """What is on its disk, layers aside."""
        for path in self.server.home.iterdir():
            if path.name != ".rove":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(self.server.home / ".rove" / "runs", ignore_errors=True)

    def as_root(self, *argv: str) -> str:
        """What a command prints in the node's network."""
        command = inside(self.namespace, *argv)
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout

    def _ip(self, arguments: str) -> None:
        self.as_root("ip", *arguments.split())

    def _in_mounts(self, *argv: str) -> None:
        command = ["nsenter", "-t", str(self.server.processes()[0]), "--mount", "--pid", *argv]
        subprocess.run(command, check=True, capture_output=True, timeout=20)

    def _sshd(self) -> list[int]:
        """The one that listens first."""
        return [pid for pid in self.server.processes() if _is_sshd(pid)]


def _outside() -> list[Path]:
    """What the nodes' user left where everybody may write; nodes share these directories with us."""
    found = [path for top in ("/tmp", "/var/tmp", "/dev/shm") for path in Path(top).iterdir()]
    return [path for path in found if _owner(path) == FIRST_ID]


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except OSError:
        return None


def _is_sshd(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("sshd")
    except OSError:
        return False


def _command_line(pid: int) -> str:
    try:
        return shlex.join(Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1])
    except OSError:
        return ""


@dataclass
class Lab:
    folder: Path
    nodes: list[LabNode]
    topology: Path
    """The file that names them."""
    _air: "subprocess.Popen[str]"
    _before: frozenset[Path] = field(default_factory=lambda: frozenset(_outside()))

    def node(self, name: str) -> LabNode:
        return next(node for node in self.nodes if node.name == name)

    @property
    def environment(self) -> dict[str, str]:
        """A user's whose data, cache and runs are the laboratory's own."""
        own = {
            "HOME": self.folder / "user",
            "XDG_DATA_HOME": self.folder / "data",
            "XDG_CACHE_HOME": self.folder / "cache",
            "ROVE_RUNS_DIR": self.runs,
            "PYTHONPATH": ROOT,
        }
        inherited = {key: value for key, value in os.environ.items() if key != "SSH_AUTH_SOCK"}
        return {**inherited, **{key: str(value) for key, value in own.items()}, "COLUMNS": "200"}

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def known_hosts(self) -> KnownHosts:
        return KnownHosts(self.folder / "data" / "rove" / "known_hosts" / NAME)

    def start(self, *arguments: str | Path) -> "subprocess.Popen[str]":
        """`rove` with these arguments, to be watched; in a session of its own, as from another terminal."""
        return subprocess.Popen(
            [sys.executable, "-m", "orchestrator.cli.main", *map(str, arguments)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def rove(self, *arguments: str | Path, timeout: float = PATIENCE_S) -> "subprocess.CompletedProcess[str]":
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def enrol(self) -> None:
        done = self.rove("enroll", self.topology, "--yes", "--json")
        assert done.returncode == 0, done.stdout + done.stderr

    def leftovers(self) -> list[str]:
        """What is not as it was when the nodes were switched on: empty after every run. Layers may stay."""
        outside = [f"file {path}" for path in _outside() if path not in self._before]
        return [*outside, *(what for node in self.nodes for what in node.leftovers())]

    def tidy(self) -> None:
        """Make the nodes new where they are not."""
        for node in self.nodes:
            if not node.is_on or node.leftovers():
                self.power_off(node)
                node.wipe()
                self.power_on(node)

    def power_off(self, *nodes: LabNode) -> None:
        """Their radios, too, are silent."""
        for node in nodes:
            node.power_off()
        self._silence()

    def power_on(self, *nodes: LabNode) -> None:
        for node in nodes:
            node.power_on()
        self._silence()

    @contextmanager
    def without_power(self, node: LabNode) -> Iterator[None]:
        self.power_off(node)
        try:
            yield
        finally:
            self.power_on(node)

    def experiment(self, file: Path, **changes: Any) -> Path:
        """A short one on all of it: a camera, work and a screen in the first row; the others forward."""
        document = {**EXPERIMENT, "topology": os.path.relpath(self.topology, file.parent), **changes}
        file.write_text(yaml.safe_dump(document))
        return file

    def _silence(self) -> None:
        assert self._air.stdin is not None
        off = [node.name for node in self.nodes if not node.is_on]
        self._air.stdin.write(json.dumps(off) + "\n")
        self._air.stdin.flush()
        assert _heard(self._air) == {"silenced": off}


def _heard(air: "subprocess.Popen[str]") -> dict[str, Any]:
    assert air.stdout is not None
    line = air.stdout.readline()
    if not line:
        assert air.stderr is not None
        raise RuntimeError(f"the laboratory's networks ended: {air.stderr.read()}")
    said: dict[str, Any] = json.loads(line)
    return said


@contextmanager
def _air(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Its networks; taken down by their own process when we close its stdin, or die."""
    air = subprocess.Popen(
        [sys.executable, "-m", "tests.ssh.air", str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield air
    finally:
        _, err = air.communicate(timeout=PATIENCE_S)
    assert air.returncode == 0, err


@contextmanager
def laboratory(folder: Path, nodes: Sequence[str] = NODES) -> Iterator[Lab]:
    """Six nodes that are on and enrolled; everything goes at the end, whatever happened."""
    mark = mark_of(folder)
    document: dict[str, Any] = {"name": NAME, "nodes": list(nodes), **_RADIO}
    topology = folder / "topology.yaml"
    topology.write_text(yaml.safe_dump(document))
    (folder / "user").mkdir()
    key = new_key(folder / "user" / "id_ed25519")
    with ExitStack() as stack:
        air = stack.enter_context(_air(folder))
        prefix = _heard(air)["prefix"]
        made = [
            LabNode(
                name,
                f"10.77.0.{place}",
                names.HOST_NAMES / mark.namespace(name),
                (names.HOST_NAMES / mark.namespace(CONTROL), f"node{place}"),
                SshServer(
                    name,
                    folder / "nodes" / name,
                    key,
                    address=f"{prefix}.{place}",
                    network=names.HOST_NAMES / mark.namespace(name),
                    sudo=True,
                    # So that they go with the networks if we do not live to stop them.
                    environment=mark.environment,
                ),
            )
            for place, name in enumerate(nodes, start=1)
        ]
        document["defaults"] = {
            "user": USER,
            "key": str(key),
            "port": made[0].server.port,
            "interface": RADIO_LINK,
        }
        document["hosts"] = {
            node.name: {"host": node.server.address, "address": node.address} for node in made
        }
        topology.write_text(yaml.safe_dump(document))
        stack.enter_context(running(*(node.server for node in made)))
        for node in made:
            node.switched_on()
        lab = Lab(folder, made, topology, air)
        lab.enrol()
        yield lab
    assert network.leftovers(mark) == []
