"""The driver of CORE as a process on this machine, spoken to as the orchestrator does."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import msgspec

from orchestrator.backends.core.link import DRIVER
from orchestrator.backends.core.preflight import Observed, preflight_of, problems
from orchestrator.backends.core.session import Session, session_of
from orchestrator.mobility.generate import generate_trace
from orchestrator.spec.topology import Topology

_PATIENCE_S = 60.0


class DrivenCore:
    def __init__(self, python: str, daemon: str, environment: Mapping[str, str]) -> None:
        self._argv = [python, "-u", str(DRIVER), "--daemon", daemon]
        self._environment = environment
        self._id = 0
        self.process = subprocess.Popen(
            self._argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self._id += 1
        line = msgspec.json.encode({"id": self._id, "do": do, **arguments})
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer["id"] == self._id
        return answer

    def create(self, session: Session) -> dict[str, Any]:
        return self.ask("create", session=session)

    def try_out(self, meant: Topology, session: Session, patience_s: float) -> list[str]:
        """The problems that a preflight finds."""
        preflight = preflight_of(meant, session)
        assert preflight is not None
        answer = self.ask("preflight", preflight=msgspec.structs.replace(preflight, patience_s=patience_s))
        return problems(preflight, msgspec.convert(answer["observed"], list[Observed]), session.air)

    def once(self, *arguments: str) -> dict[str, Any]:
        """What another driver says that only looks, or removes."""
        done = subprocess.run(
            [*self._argv, *arguments], env=self._environment, capture_output=True, timeout=_PATIENCE_S
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(_PATIENCE_S)
        finally:
            self.process.kill()
            self.process.stdout.close()


def described(meant: Topology, run: str = "run-1") -> Session:
    return session_of(meant, run, generate_trace(meant, 1, 5.0))
