"""The driver of CORE as a process on this machine, spoken to as the orchestrator does."""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from orchestrator.backends.core.driver_client import DRIVER, LEFTOVERS
from orchestrator.backends.core.preflight import Observed, preflight_of, problems
from orchestrator.backends.core.session import Session, session_of
from orchestrator.mobility.generate import generate_trace
from orchestrator.spec.topology import Topology

_PATIENCE_S = 60.0


class DrivenCore:
    def __init__(self, python: str, daemon: str, environment: Mapping[str, str]) -> None:
        self._python = python
        self._argv = [python, "-u", str(DRIVER), "--daemon", daemon]
        self._notes = tempfile.TemporaryDirectory()
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

    def ledger(self, mark: str) -> Path:
        """The file in which a session is noted."""
        return Path(self._notes.name) / f"{mark}.json"

    def create(self, session: Session) -> dict[str, Any]:
        return self.ask("create", session=session, ledger=str(self.ledger(session.mark)))

    def try_out(self, meant: Topology, session: Session, patience_s: float) -> list[str]:
        """The problems that a preflight finds."""
        preflight = preflight_of(meant, session)
        assert preflight is not None
        answer = self.ask("preflight", preflight=msgspec.structs.replace(preflight, patience_s=patience_s))
        return problems(preflight, msgspec.convert(answer["observed"], list[Observed]), session.air)

    def once(self, *arguments: str) -> dict[str, Any]:
        """What another driver says that only looks, or removes."""
        return self._said([*self._argv, *arguments])

    def forgotten(self, verb: str, mark: str) -> list[str]:
        """What is left that a daemon does not know, after it was looked for or removed."""
        left: list[str] = self._said([self._python, str(LEFTOVERS), verb, str(self.ledger(mark))])["left"]
        return left

    def _said(self, argv: list[str]) -> dict[str, Any]:
        done = subprocess.run(argv, env=self._environment, capture_output=True, timeout=_PATIENCE_S)
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
            self._notes.cleanup()


def described(meant: Topology, mark: str = "run-1") -> Session:
    return session_of(meant, mark, generate_trace(meant, 1, 5.0))
