"""The client of the daemon, and in it the daemon: see ``core.recorded`` for what it keeps."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any, NamedTuple

import grpc  # type: ignore[import-not-found,import-untyped,unused-ignore]
from core import recorded  # type: ignore[import-not-found,unused-ignore]
from core.api.grpc import wrappers  # type: ignore[import-not-found,unused-ignore]

MODELS = ["emane_bypass", "emane_ieee80211abg", "emane_rfpipe"]


class CoreConfig(NamedTuple):
    emane_models: list[str]


class CoreGrpcClient:
    def __init__(self, address: str = "localhost:50051") -> None:
        self.address = address

    @contextmanager
    def context_connect(self) -> Iterator[None]:
        yield

    def get_config(self) -> CoreConfig:
        self._call()
        return CoreConfig(MODELS if recorded.traits()["emane"] else [])

    def create_session(self) -> Any:
        self._call()
        number = 1
        while number in recorded.sessions():
            number += 1
        if recorded.session_folder(number).exists():  # of a session that a daemon before this one had
            text = f"[Errno 17] File exists: '{recorded.session_folder(number)}'"
            raise grpc.RpcError("UNKNOWN", f"Exception calling application: {text}")
        recorded.write(number, {"state": "DEFINITION", "metadata": {}})
        return wrappers.Session(
            number, wrappers.SessionState.DEFINITION, str(recorded.session_folder(number))
        )

    def start_session(self, session: Any, definition: bool = False) -> tuple[bool, list[str]]:
        self._known(session.id)
        traits = recorded.traits()
        kept: dict[str, Any] = {
            "state": "DEFINITION" if definition else "INSTANTIATION",
            "metadata": dict(session.metadata),
            "location": asdict(session.location),
        }
        if not definition:
            (air,) = (node for node in session.nodes.values() if node.type is not wrappers.NodeType.DEFAULT)
            kept["air"] = {"wlan": air.wlan, "emane": air.emane_config if air.emane else None}
            kept["nodes"] = {
                link.node.name: {
                    "id": link.node.id,
                    "at": (link.node.position.x, link.node.position.y),
                    "address": link.interface.ip4,
                    "services": sorted(link.node.services),
                }
                for link in session.links
            }
        recorded.write(session.id, kept)
        if definition:
            return True, []
        if traits["exceptions"]:
            return False, list(traits["exceptions"])
        if not kept["air"]["emane"]:
            self._shape(recorded.wlan_config(kept), traits["netem"])
        else:
            names = enumerate(kept["nodes"], start=1)
            lines = "".join(f"{name} eth0 {number}\n" for number, name in names)
            (recorded.session_folder(session.id) / "emane_nems").write_text(lines)
        pids = recorded.start_processes(session.id, kept) if traits["processes"] else []
        recorded.write(session.id, {**kept, "state": "RUNTIME", "pids": pids})
        return True, []

    def get_sessions(self) -> list[Any]:
        self._call()
        return [
            wrappers.SessionSummary(number, wrappers.SessionState[kept["state"]])
            for number, kept in recorded.sessions().items()
        ]

    def get_session(self, session_id: int) -> Any:
        kept = self._known(session_id)
        directory = str(recorded.session_folder(session_id))
        return wrappers.Session(
            session_id, wrappers.SessionState[kept["state"]], directory, dict(kept["metadata"])
        )

    def delete_session(self, session_id: int) -> bool:
        for pid in self._known(session_id).get("pids", ()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(recorded.session_folder(session_id))
        return True

    def move_node(self, session_id: int, node_id: int, position: Any) -> bool:
        kept = self._known(session_id)
        found = [node for node in kept["nodes"].values() if node["id"] == node_id]
        if not found:
            raise grpc.RpcError("NOT_FOUND", f"node {node_id} not found")
        found[0]["at"] = (position.x, position.y)
        recorded.write(session_id, kept)
        return True

    def _call(self) -> None:
        if not recorded.traits()["up"]:
            raise grpc.RpcError("UNAVAILABLE", f"failed to connect to all addresses; {self.address}")

    def _known(self, session_id: int) -> Any:
        self._call()
        kept = recorded.sessions().get(session_id)
        if kept is None:
            raise grpc.RpcError("NOT_FOUND", f"session {session_id} not found")
        return kept

    def _shape(self, config: dict[str, str], netem: bool) -> None:
        if netem or all(float(config[key]) == 0 for key in ("bandwidth", "delay", "jitter", "error")):
            return
        text = "Exception calling application: tc qdisc replace dev eth0 root handle 10: netem rate …:\n"
        raise grpc.RpcError("UNKNOWN", f"{text}Error: Specified qdisc kind is unknown.")
