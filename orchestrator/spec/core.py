"""Defines the key ``core`` of a topology: the host that runs CORE.

Users install CORE and EMANE there themselves; docs/core.md says what Rove expects where.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from orchestrator.spec.hosts import Access, Address, JumpField, KeyPath, Login, SshPort, host_of
from orchestrator.spec.inventory import Host
from orchestrator.spec.problems import shown, unusable

CORE_HOST = "core"
"""The name that the host's key is enrolled under."""
_ENDPOINT = r"[A-Za-z0-9._-]{1,253}:\d{1,5}"


def _read_python(value: Any) -> str:
    if isinstance(value, str) and value.startswith("/") and "\n" not in value:
        return value
    hint = "for example python: /opt/core/venv/bin/python"
    raise unusable(f"{shown(value)} is not the absolute path of a Python", hint)


def _read_endpoint(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(_ENDPOINT, value):
        return value
    raise unusable(f"{shown(value)} is not where a daemon listens", "for example daemon: localhost:50051")


class Core(Access):
    """Says how to reach the host over SSH, and where CORE is on it."""

    host: Address = Field(examples=["emulator.lab"])
    user: Login
    port: SshPort = Field(default=22, description="Of its SSH server")
    key: KeyPath | None = None
    jump: JumpField = Field(default=None, description="A host to go through", examples=["me@gateway.lab"])
    python: Annotated[
        str,
        BeforeValidator(_read_python),
        WithJsonSchema({"type": "string", "pattern": "^/", "description": "The Python that CORE is in"}),
    ] = "/opt/core/venv/bin/python"
    daemon: Annotated[
        str,
        BeforeValidator(_read_endpoint),
        WithJsonSchema(
            {"type": "string", "pattern": f"^{_ENDPOINT}$", "description": "Where core-daemon listens there"}
        ),
    ] = "localhost:50051"
    netem: bool = Field(
        default=True,
        strict=True,
        description="false: its kernel has no netem, so that a disc has neither rate nor latency",
    )

    def machine(self) -> Host:
        return host_of(CORE_HOST, self.model_dump())
