"""Six nodes for tests that leave them as they are, and nodes of one's own for those that do not.

``lab``: six that have a radio, too, for whole runs.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.ssh.lab import Lab, laboratory
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


@pytest.fixture(scope="session")
def standing_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """For fixtures that many tests share; a test uses ``lab``."""
    with laboratory(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture
def lab(standing_lab: Lab) -> Iterator[Lab]:
    """Shared: whoever uses it has to leave nothing on the nodes; what a failed test left is tidied."""
    yield standing_lab
    left = standing_lab.leftovers()
    standing_lab.tidy()
    assert left == []


@pytest.fixture
def make(tmp_path: Path, client_key: Path) -> Iterator[Make]:
    """Starts a node; its name, and how it differs from others."""
    with ExitStack() as stack:

        def started(name: str = "n01", **changes: Any) -> SshServer:
            server = SshServer(name, tmp_path / name, client_key, **changes)
            stack.enter_context(running(server))
            return server

        yield started
