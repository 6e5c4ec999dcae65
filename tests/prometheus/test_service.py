"""Prometheus beside `rove serve`: it starts with what was written for it, and ends with its owner."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from orchestrator.live.prometheus.place import PrometheusFailed
from orchestrator.live.prometheus.probing import Login, listens
from orchestrator.live.prometheus.service import USER, Prometheus, free_port
from orchestrator.live.prometheus.targets import RunTarget, service_discovery

LABELS = {"run": "r1", "experiment": "line", "seed": "7", "k": "2", "backend": "netns"}
TOKEN = "a-token-of-24-characters"


class Answers(BaseHTTPRequestHandler):
    """A server that shows one run with one node to those who have the token."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.send_response(401)
            self.end_headers()
            return
        body, kind = b"rove_agent_boot 1\n", "text/plain; version=0.0.4"
        if self.path == "/sd":
            body = service_discovery([RunTarget(LABELS, ("a",))], self.headers["Host"])
            kind = "application/json"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


async def got(started: Prometheus, path: str, headers: str = "") -> tuple[str, bytes]:
    port = int(started.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n{headers}\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return head.decode(), body


def login(started: Prometheus) -> str:
    if started.password_file is None:
        return ""
    return f"Authorization: {Login(USER, started.password_file.read_text().strip()).header}\r\n"


async def asked(started: Prometheus, expression: str) -> list[object]:
    _, body = await got(started, f"/api/v1/query?query={quote(expression)}", login(started))
    found: list[object] = json.loads(body)["data"]["result"]
    return found


def test_it_finds_targets_with_the_token_and_keeps_its_data(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()

    async def use() -> None:
        async with Prometheus(
            tmp_path / "p", f"127.0.0.1:{server.server_port}", TOKEN, free_port(0)
        ) as started:
            async with asyncio.timeout(40):
                wanted = 'rove_agent_boot{run="r1", k="2", node="a", instance="r1/a"}'
                while not await asked(started, wanted):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.5)
            assert await asked(started, 'up{job="rove"} == 1')

    try:
        asyncio.run(use())
    finally:
        server.shutdown()
        server.server_close()
    assert (tmp_path / "p" / "token").stat().st_mode & 0o777 == 0o600
    assert TOKEN not in (tmp_path / "p" / "prometheus.yml").read_text()
    assert (tmp_path / "p" / "data" / "wal").is_dir()


def test_two_cannot_share_a_directory(tmp_path: Path) -> None:
    place = tmp_path / "p"

    async def use() -> None:
        async with Prometheus(place, "127.0.0.1:1", TOKEN, free_port(0)):
            files = {
                file: file.read_bytes() for file in place.iterdir() if file.suffix or file.name == "token"
            }
            assert {"prometheus.yml", "web.yml", "token"} <= {file.name for file in files}
            with pytest.raises(PrometheusFailed, match="another Prometheus of rove serve uses"):
                await Prometheus(place, "127.0.0.1:2", port=free_port(0)).__aenter__()
            assert files == {file: file.read_bytes() for file in files}, "nothing was written"

    asyncio.run(use())


def test_one_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data" / "wal").mkdir(parents=True)
    (tmp_path / "data" / "chunks_head").write_text("no directory")

    async def use() -> None:
        with pytest.raises(PrometheusFailed, match=r"Prometheus ended at once: .*chunks_head"):
            await Prometheus(tmp_path, "127.0.0.1:1", port=free_port(0)).__aenter__()

    asyncio.run(use())


def test_links_beside_the_runs_lead_nowhere(tmp_path: Path) -> None:
    victim, place = tmp_path / "victim", tmp_path / "p"
    victim.write_text("precious")
    place.mkdir()
    for name in ("prometheus.log", "prometheus.yml", "rules.yml", "web.yml", "token", "password"):
        (place / name).symlink_to(victim)

    async def use() -> None:
        async with Prometheus(place, "127.0.0.1:1", TOKEN, free_port(0)):
            pass
        (place / "data" / "queries.active").unlink()
        (place / "data" / "queries.active").symlink_to(victim)
        with pytest.raises(PrometheusFailed, match=r"queries\.active is neither a file nor a directory"):
            await Prometheus(place, "127.0.0.1:1", TOKEN, free_port(0)).__aenter__()

    asyncio.run(use())
    assert victim.read_text() == "precious"
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("token", [None, TOKEN])
def test_other_sites_cannot_read_its_answers(tmp_path: Path, token: str | None) -> None:
    async def use() -> None:
        async with Prometheus(tmp_path, "127.0.0.1:1", token, free_port(0)) as started:
            for origin in ("http://evil.example", "null", f"http://localhost:{started.url[-5:]}"):
                head, _ = await got(started, "/api/v1/query?query=1", f"Origin: {origin}\r\n{login(started)}")
                assert " 200 " in head.splitlines()[0]
                assert "access-control-allow-origin" not in head.lower()
            assert (await asked(started, "vector(1)")) != []

    asyncio.run(use())


def test_it_asks_for_a_password_where_the_page_asks_for_a_token(tmp_path: Path) -> None:
    async def use() -> str:
        async with Prometheus(tmp_path, "127.0.0.1:1", TOKEN, free_port(0)) as started:
            wrong = f"Authorization: {Login(USER, 'x' * 32).header}\r\n"
            bearer = f"Authorization: Bearer {TOKEN}\r\n"
            for path in ("/api/v1/query?query=1", "/metrics", "/graph", "/-/ready", "/api/v1/status/config"):
                for headers in ("", wrong, bearer):
                    assert " 401 " in (await got(started, path, headers))[0].splitlines()[0]
            assert started.password_file is not None
            assert started.password_file.stat().st_mode & 0o777 == 0o600
            assert started.password_file.read_text().strip() not in (tmp_path / "web.yml").read_text()
            return login(started)

    tmp_path.chmod(0o700)
    first = asyncio.run(use())
    assert asyncio.run(use()) == first, "so that a data source that knows it keeps working"
    tmp_path.chmod(0o755)
    assert asyncio.run(use()) != first, "others may have written it"


def test_another_program_on_its_port_cannot_pass_for_it(tmp_path: Path) -> None:
    heard: list[str] = []

    class Impostor(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Impostor)
    Thread(target=server.serve_forever, daemon=True).start()

    async def use() -> None:
        with pytest.raises(PrometheusFailed, match=r"Prometheus ended at once: .*address already in use"):
            await Prometheus(tmp_path, "127.0.0.1:1", TOKEN, server.server_port).__aenter__()

    try:
        assert listens(os.getpid(), server.server_port) and not listens(os.getppid(), server.server_port)
        asyncio.run(use())
    finally:
        server.shutdown()
        server.server_close()
    assert heard == [], "it got no password"


def test_it_dies_with_an_owner_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys; from pathlib import Path\n"
        "from orchestrator.live.prometheus.service import Prometheus, free_port\n"
        "async def use():\n"
        "    async with Prometheus(Path(sys.argv[1]), '127.0.0.1:1', port=free_port(0)) as started:\n"
        "        print(started._process.pid, flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(use())\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.send_signal(signal.SIGKILL)
    owner.communicate(timeout=10)
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}/exe").exists():
        assert time.monotonic() < deadline, "Prometheus outlives its owner"
        time.sleep(0.1)
