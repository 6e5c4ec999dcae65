"""Six nodes for tests that leave them as they are, and nodes of one's own for those that do not."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.ssh.sshd import SshServer, new_key, running

Make = Callable[..., SshServer]


@pytest.fixture(scope="session")
def client_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the user logs in with everywhere."""
    return new_key(tmp_path_factory.mktemp("client") / "id_ed25519")


@pytest.fixture(scope="session")
def six(tmp_path_factory: pytest.TempPathFactory, client_key: Path) -> Iterator[list[SshServer]]:
    folder = tmp_path_factory.mktemp("six")
    servers = [SshServer(f"n{i:02}", folder / f"n{i:02}", client_key) for i in range(1, 7)]
    with running(*servers):
        yield servers


@pytest.fixture
def make(tmp_path: Path, client_key: Path) -> Iterator[Make]:
    """Starts a node; its name, and how it differs from others."""
    with ExitStack() as stack:

        def started(name: str = "n01", **changes: Any) -> SshServer:
            server = SshServer(name, tmp_path / name, client_key, **changes)
            stack.enter_context(running(server))
            return server

        yield started
