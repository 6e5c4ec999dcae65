"""What a node must have that deployment does not bring: the routing daemon, and what it loads."""

import asyncio
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.backends.remote import requirements
from orchestrator.backends.remote.requirements import NotReady, require
from orchestrator.services.olsrd import Olsrd, OlsrdService
from orchestrator.ssh.connection import Connection


class Here:
    """A node's shell: this machine's."""

    host = SimpleNamespace(name="n1")

    async def output(self, argv: list[str], sudo: bool = False) -> str:
        return ""

    async def run(self, argv: list[str]) -> Any:
        done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, timeout=10)
        return SimpleNamespace(status=done.returncode)


def test_olsrd_without_its_plugin_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "LIBRARY_FOLDERS", (str(tmp_path / "nowhere"), f"{tmp_path}/li*"))
    monkeypatch.setattr(requirements, "SYSTEM_PATH", str(tmp_path / "sbin"))
    service = OlsrdService(Olsrd(protocol="olsrd"))

    def refusal() -> str:
        try:
            asyncio.run(require(cast(Connection, Here()), service, privilege=False))
        except NotReady as error:
            return str(error)
        return ""

    for file in ("sbin/olsrd", "lib/olsrd_jsoninfo.so.1.1"):
        assert f"{Path(file).name} is not installed there: Debian has no olsrd" in refusal()
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).touch(mode=0o755)
    assert refusal() == ""
