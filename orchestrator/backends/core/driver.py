"""Drives CORE on its own host: uploaded with the modules that it imports, and run by CORE's Python.

It reads requests from stdin and writes answers to stdout, one JSON object a line. It owns one session, and
deletes it on request, when stdin is closed, or when it is ended itself. With ``--find`` or ``--remove
MARK`` it asks the daemon for what a run left.

Only the standard library and ``core.api.grpc`` (with its grpc) are certain to be there, and Python may be
3.10.
"""

import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-not-found,import-untyped,unused-ignore]
from core.api.grpc import client as core_client  # type: ignore[import-not-found,unused-ignore]
from core.api.grpc.wrappers import (  # type: ignore[import-not-found,unused-ignore]
    Interface,
    NodeType,
    Position,
    SessionLocation,
    SessionState,
)
from leftovers import note  # type: ignore[import-not-found,unused-ignore]
from motion import Motion  # type: ignore[import-not-found,unused-ignore]

PROTOCOL = 2
MARK = "rove.run"
COMMAND_S = 10.0
END_S = 60.0
SEARCHED = ("/usr/local/bin", "/usr/bin", "/usr/sbin", "/opt/core/bin", "/sbin", "/bin")
NEM_PORT = 47000
Json = dict[str, Any]


class Refused(Exception):
    """The request cannot be fulfilled; the message is for the user."""


class CoreSession:
    """The session of one run, and what was started in it."""

    def __init__(self, client: Any, marked: Json, ledger: str) -> None:
        """``ledger``: the file that records the session, for removing what it leaves."""
        self.client = client
        self.mark: str = marked["mark"]
        self.nodes: list[Json] = marked["nodes"]
        self.ids = {node["name"]: node["id"] for node in self.nodes}
        self.places = {node["name"]: (node["x"], node["y"]) for node in self.nodes}
        self.air: Json = marked["air"]
        self.motion: Motion | None = None
        self.control: list[str] = []
        self.directory = ""
        # Metadata is sent with a start only. A start that merely defines the session sets the mark before
        # there is anything to clean up.
        try:
            self.session = client.create_session()
        except grpc.RpcError as error:
            raise Refused(no_session(rpc_text(error))) from None
        self.id: int = self.session.id
        try:
            self._note(ledger)
            self.session.metadata = {MARK: self.mark}
            self._location(marked["location"])
            client.start_session(self.session, definition=True)
            self._describe(marked["air_id"])
            self._start()
            self._find_vcmd()
            self._set_neighbours()
        except BaseException:
            self.delete()
            raise

    def _note(self, ledger: str) -> None:
        self.directory = str(self.client.get_session(self.id).dir)
        try:
            note(Path(ledger), self.mark, self.id, self.directory)
        except OSError as error:
            raise Refused(f"the session cannot be noted in {ledger} on CORE's host: {error}") from None

    def _location(self, location: Json) -> None:
        self.session.location = SessionLocation(
            x=0.0,
            y=0.0,
            z=0.0,
            lat=location["lat"],
            lon=location["lon"],
            alt=location["alt"],
            scale=location["scale"],
        )

    def _describe(self, air_id: int) -> None:
        session, emane = self.session, self.air["emane"]
        if emane and emane not in self.client.get_config().emane_models:
            raise Refused(f"CORE has no {emane} here: EMANE is not installed, or core-daemon did not find it")
        kind = NodeType.EMANE if emane else NodeType.WIRELESS_LAN
        origin = Position(x=0.0, y=0.0)
        air = session.add_node(air_id, _type=kind, name="air", position=origin, emane=emane or None)
        if emane:
            air.set_emane_model(emane, self.air["config"])
        else:
            air.set_wlan(self.air["config"])
        for entry in self.nodes:
            position = Position(x=entry["x"], y=entry["y"])
            node = session.add_node(entry["id"], model="PC", name=entry["name"], position=position)
            # Without this model's default services, which set a route of their own.
            node.services = {"IPForward"}
            interface = Interface(id=0, name="eth0", ip4=entry["address"], ip4_mask=32)
            session.add_link(node1=node, node2=air, iface1=interface)

    def _start(self) -> None:
        try:
            started, exceptions = self.client.start_session(self.session)
        except grpc.RpcError as error:
            reason = rpc_text(error)
            if "netem" in reason:
                raise Refused(
                    "the kernel of CORE's host has no netem, which the disc's rate and latency need: "
                    "load sch_netem there, or write netem: false in the topology's section core"
                ) from None
            raise Refused(f"CORE could not start the session: {reason}") from None
        if not started or exceptions:
            raise Refused(
                f"CORE could not start the session: {'; '.join(exceptions) or 'it gives no reason'}"
            )
        state = self.state()
        if state != SessionState.RUNTIME.name:
            raise Refused(f"CORE's session did not start: its state is {state}")

    def _find_vcmd(self) -> None:
        first = self.nodes[0]["name"]
        vcmd = found("vcmd")
        channel = ["-c", f"{self.directory}/{first}", "--", "true"]
        # Its sockets may be open to everybody, or to root alone.
        for control in ([vcmd], ["sudo", "-n", vcmd]):
            done = executed([*control, *channel])
            if done["status"] == 0:
                self.control = control
                return
        raise Refused(f"vcmd cannot enter node {first}, nor can sudo -n vcmd: {done['stderr'].strip()}")

    def _set_neighbours(self) -> None:
        """Tells every node every other's hardware address, as in namespaces: a lost ARP request would delay a
        first packet by a second, in one run and not in the next."""
        hardware = {}
        for node in self.ids:
            words = self._must(node, ["ip", "-o", "link", "show", "dev", "eth0"]).split()
            hardware[node] = words[words.index("link/ether") + 1]
        known = {
            entry["name"]: f"neigh replace {entry['address']} lladdr {hardware[entry['name']]} dev eth0"
            for entry in self.nodes
        }
        for node in self.ids:
            lines = "".join(f"{line}\n" for peer, line in known.items() if peer != node)
            self._must(node, ["ip", "-batch", "-"], lines)

    def enter(self, node: str) -> list[str]:
        """Returns the command prefix that runs a command in the node, as root."""
        return [*self.control, "-c", f"{self.directory}/{node}", "--"]

    def enter_as_user(self, node: str) -> list[str]:
        """Returns the prefix that runs it with the rights and the home of the user who runs this."""
        if os.geteuid() == 0:
            return self.enter(node)
        rights = ["--reuid", str(os.geteuid()), "--regid", str(os.getegid()), "--init-groups"]
        return [*self.enter(node), found("setpriv"), *rights, "--", "env", f"HOME={Path.home()}"]

    def state(self) -> str:
        """Returns the session's state; empty if somebody has deleted it."""
        states = {one.id: one.state.name for one in self.client.get_sessions()}
        return str(states.get(self.id, ""))

    def place(self, node: str, x: float, y: float) -> None:
        self.client.move_node(self.id, self.ids[node], position=Position(x=x, y=y))

    def command(self, node: str, argv: list[str], timeout: float = COMMAND_S) -> Json:
        """Runs a command in a node. Not by node_command, which loses stdout if the command fails."""
        return executed([*self.enter(node), *argv], timeout)

    def try_out(self, preflight: Json) -> list[Json]:
        pair: list[str] = preflight["pair"]
        address = {node["name"]: node["address"] for node in self.nodes}
        first, second = pair
        for node, peer in ((first, second), (second, first)):
            self._must(node, ["ip", "route", "add", f"{address[peer]}/32", "dev", "eth0"])
        try:
            return [
                self._trial(trial, pair, address[second], preflight["patience_s"])
                for trial in preflight["trials"]
            ]
        finally:
            for node, peer in ((first, second), (second, first)):
                self.command(node, ["ip", "route", "del", f"{address[peer]}/32", "dev", "eth0"])
                self.place(node, *self.places[node])

    def _trial(self, trial: Json, pair: list[str], address: str, patience: float) -> Json:
        for node, spot in zip(pair, trial["at"], strict=True):
            self.place(node, *spot)
        deadline = time.monotonic() + patience
        while True:
            heard = self.command(pair[0], ["ping", "-n", "-c", "1", "-W", "1", address])["status"] == 0
            if heard == trial["heard"] or time.monotonic() > deadline:
                break
            time.sleep(0.3)
        if not heard or trial["rx_dbm"] is None:
            return {"heard": heard}
        try:
            return {"heard": True, "rx_dbm": self._receive_power(pair[0], pair[1])}
        except Exception as error:  # EMANE's own tools may fail; the run can do without them
            return {"heard": True, "note": f"power not measured: {type(error).__name__}: {error}"}

    def _receive_power(self, node: str, sender: str) -> float:
        """Returns the power of ``sender``'s latest frame at ``node``'s physical layer."""
        from emane.shell import ControlPortClient  # type: ignore[import-not-found,import-untyped,unused-ignore]

        lines = Path(self.directory, "emane_nems").read_text().splitlines()
        nems = {node: int(number) for node, _, number in map(str.split, lines)}
        shown = self._must(node, ["ip", "-o", "-4", "addr", "show", "dev", "ctrl0"]).split()
        address = shown[shown.index("inet") + 1].partition("/")[0]
        control = ControlPortClient(address, NEM_PORT + nems[node])
        try:
            (layers,) = control.getManifest().values()
            (build,) = (build for build, layer, _ in layers if layer == "PHY")
            labels, rows = control.getStatisticTable(build, ["ReceivePowerTable"])["ReceivePowerTable"]
        finally:
            control.stop()
        of, power = labels.index("NEM"), labels.index("Rx Power")
        return float(next(row[power][0] for row in rows if row[of][0] == nems[sender]))

    def _must(self, node: str, argv: list[str], input_text: str = "") -> str:
        done = executed([*self.enter(node), *argv], input_text=input_text)
        if done["status"] != 0:
            raise Refused(f"{node}: {' '.join(argv)}: {(done['stderr'] or done['stdout']).strip()}")
        return str(done["stdout"])

    def delete(self) -> None:
        """Deletes the session. May be repeated."""
        if self.motion is not None:
            self.motion.stop()
        delete(self.client, self.id)


class Driver:
    def __init__(self, client: Any) -> None:
        self.client = client
        self.session: CoreSession | None = None

    def answer(self, request: Json) -> Json:
        act = {
            "hello": self.hello,
            "create": self.create,
            "preflight": self.preflight,
            "move": self.move,
            "status": self.status,
            "run": self.execute,
            "delete": self.delete,
        }.get(request["do"])
        if act is None:
            raise Refused(f"there is no request {request['do']}")
        return act(request)

    def hello(self, request: Json) -> Json:
        if request["protocol"] != PROTOCOL:
            raise Refused(f"this driver speaks protocol {PROTOCOL}, not {request['protocol']}")
        sessions = len(self.client.get_sessions())
        from core import constants  # type: ignore[import-not-found,unused-ignore]

        return {
            "version": constants.COREDPY_VERSION,
            "emane": sorted(self.client.get_config().emane_models),
            "sessions": sessions,
        }

    def create(self, request: Json) -> Json:
        if self.session is not None:
            raise Refused("there is a session already")
        session = self.session = CoreSession(self.client, request["session"], request["ledger"])
        enter = {node["name"]: session.enter_as_user(node["name"]) for node in session.nodes}
        return {"session": session.id, "directory": session.directory, "enter": enter}

    def preflight(self, request: Json) -> Json:
        return {"observed": self._own().try_out(request["preflight"])}

    def move(self, request: Json) -> Json:
        session = self._own()
        if session.motion is not None:
            raise Refused("nodes are moving already")
        session.motion = Motion(
            session.place, session.places, request["paths"], request["period"], rpc_failure
        )
        session.motion.start()
        return {"begun_ns": session.motion.begun_ns}

    def status(self, request: Json) -> Json:
        session = self._own()
        answer: Json = {"state": session.state(), "failure": "", "rounds": 0, "late_rounds": 0, "late_s": 0.0}
        if session.motion is not None:
            motion = session.motion
            answer.update(failure=motion.failure, rounds=motion.rounds, late_s=motion.late_s)
            answer["late_rounds"] = motion.late_rounds
        return answer

    def execute(self, request: Json) -> Json:
        return self._own().command(request["node"], request["argv"], request["timeout"])

    def delete(self, request: Json) -> Json:
        session, self.session = self.session, None
        if session is not None:
            session.delete()
        return {}

    def _own(self) -> CoreSession:
        if self.session is None:
            raise Refused("there is no session")
        return self.session


def delete(client: Any, session_id: int) -> bool:
    """Deletes the session with all processes in its nodes. Returns False if it is gone already."""
    try:
        client.delete_session(session_id)
    except grpc.RpcError as error:
        if session_id in (one.id for one in client.get_sessions()):
            raise Refused(f"CORE does not delete session {session_id}: {rpc_text(error)}") from None
        return False
    return True


def no_session(reason: str) -> str:
    if "File exists" not in reason:
        return f"CORE could not create a session: {reason}"
    return (
        f"CORE could not create a session ({reason}): core-daemon has forgotten a session that left its "
        "directory. If it was Rove's, rove down removes it; else see docs/core.md"
    )


def marked(client: Any, mark: str) -> list[int]:
    """Returns the sessions with this mark, and no others."""
    found = []
    for one in client.get_sessions():
        try:
            metadata = client.get_session(one.id).metadata
        except grpc.RpcError:
            continue  # deleted meanwhile
        if metadata.get(MARK) == mark:
            found.append(one.id)
    return found


def executed(argv: list[str], timeout: float = COMMAND_S, input_text: str = "") -> Json:
    try:
        done = subprocess.run(argv, input=input_text.encode(), capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"status": 124, "stdout": "", "stderr": f"not done within {timeout:g} s"}
    except OSError as error:
        return {"status": 127, "stdout": "", "stderr": str(error)}
    texts = {"stdout": done.stdout.decode(errors="replace"), "stderr": done.stderr.decode(errors="replace")}
    return {"status": done.returncode, **texts}


def found(program: str) -> str:
    path = os.pathsep.join([os.environ.get("PATH", ""), *SEARCHED])
    where = shutil.which(program, path=path)
    if where is None:
        raise Refused(f"{program} is not on CORE's host, neither on the PATH nor in {', '.join(SEARCHED)}")
    return where


def rpc_text(error: Any) -> str:
    """Returns gRPC's error as one line."""
    details = str(error.details() if callable(getattr(error, "details", None)) else error)
    lines = [line.strip() for line in details.splitlines() if line.strip()]
    return " ".join(lines)[:500] or type(error).__name__


def rpc_failure(error: Exception) -> str:
    """Returns why the daemon could not be reached; empty for other errors."""
    return rpc_text(error) if isinstance(error, grpc.RpcError) else ""


def say(message: Json) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def requests() -> Iterator[Json]:
    """Yields requests until stdin is closed. Then a daemon that hangs is not awaited beyond a limit."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        # Not by sys.stdin: a waiting thread would hold its lock and break the interpreter's exit.
        rest = b""
        while chunk := os.read(0, 65536):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                lines.put(line)
        lines.put(b"")
        time.sleep(END_S)
        os._exit(1)

    threading.Thread(target=read, name="requests", daemon=True).start()
    while line := lines.get():
        yield json.loads(line)


def serve(client: Any) -> None:
    driver = Driver(client)
    try:
        for request in requests():
            try:
                answer = driver.answer(request)
            except Refused as error:
                answer = {"error": str(error)}
            except grpc.RpcError as error:
                answer = {"error": f"CORE does not answer as it should: {rpc_text(error)}"}
            say({"id": request["id"], **answer})
    finally:
        driver.delete({})


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--daemon", required=True, metavar="HOST:PORT")
    parser.add_argument("--find", metavar="MARK")
    parser.add_argument("--remove", metavar="MARK")
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _end)
    client = core_client.CoreGrpcClient(arguments.daemon)
    with client.context_connect():
        if arguments.find is None and arguments.remove is None:
            serve(client)
            return
        try:
            if arguments.find is not None:
                sessions = marked(client, arguments.find)
            else:
                sessions = [one for one in marked(client, arguments.remove) if delete(client, one)]
            say({"sessions": sessions})
        except (Refused, grpc.RpcError) as error:
            say({"error": str(error) if isinstance(error, Refused) else rpc_text(error)})
            raise SystemExit(1) from None


if __name__ == "__main__":
    main()
