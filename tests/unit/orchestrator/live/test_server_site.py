import asyncio
import gzip
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from orchestrator.live.server import catalogue, listening
from orchestrator.live.server.process import Settings
from orchestrator.runs import run_directory
from orchestrator.runs.files import read_object
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import known_run, small_sweep
from tests.unit.orchestrator.live.browser_requests import Browser, browse

pytestmark = pytest.mark.unit

TOKEN = "a-token-of-twenty-characters"
JPEG = b"\xff\xd8\xff\xe0picture\xff\xd9"


def known(root: Path) -> RunDirectory:
    return RunDirectory(known_run(root, run="k1").write())


def test_runs_are_listed_with_their_sweeps(tmp_path: Path) -> None:
    known(tmp_path)
    sweep = small_sweep(tmp_path).name

    async def act(browser: Browser) -> None:
        status, found = await browser.get("/api/runs")
        assert status == 200
        rows = {row["id"]: row for row in found["runs"]}
        assert len(rows) == 5
        assert rows["k1"] | {"started": ""} == {
            "id": "k1",
            "experiment": "known",
            "state": "ended",
            "verdict": "valid",
            "started": "",
            "sweep": None,
            "members": None,
        }
        assert rows[sweep]["members"] == [f"{sweep}.0{number}" for number in (1, 2, 3)]
        assert rows[f"{sweep}.02"]["sweep"] == sweep

    browse(tmp_path, act)


def test_a_sweep_has_its_cells_with_factors_and_results(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    listed = json.loads((sweep / "sweep.json").read_text())
    listed["cells"] = [{"replicas": k} for k in (1, 2, 3, 4)]
    (sweep / "sweep.json").write_text(json.dumps(listed))
    summary = {"metrics": {"throughput_fps": 2.5, "name": "text", "lost": None, "ok": True}}
    (sweep.parent / f"{sweep.name}.01" / "summary.json").write_text(json.dumps(summary))

    async def act(browser: Browser) -> None:
        status, found = await browser.get(f"/api/sweeps/{sweep.name}")
        assert status == 200
        assert [cell["factors"] for cell in found["cells"]] == listed["cells"]
        assert [cell["state"] for cell in found["cells"]] == ["ended", "ended", "ended", "waiting"]
        assert found["cells"][0]["results"] == {"throughput_fps": 2.5}
        assert found["counts"] == {"valid": 3, "waiting": 1}
        assert (await browser.get("/api/sweeps/nothing"))[0] == 404
        for _ in range(200):
            found = (await browser.get(f"/api/sweeps/{sweep.name}"))[1]
            if all(cell["results"] for cell in found["cells"][:3]):
                break
            await asyncio.sleep(0.2)
        counted = {"offered": 300, "delivered": 300, "lost": 0, "waiting": 0, "loss": 0.0}
        assert found["cells"][1]["results"] == {f"{name} so far": n for name, n in counted.items()}

    browse(tmp_path, act)


def test_the_changes_of_a_run_come_as_events(tmp_path: Path) -> None:
    known(tmp_path)

    async def act(browser: Browser) -> None:
        _, head = await browser.get("/api/runs/k1/head")
        assert head["run"] == "k1"
        assert [app["name"] for app in head["apps"]] == ["query"]
        assert head["control"] is False
        found = await browser.messages("/api/runs/k1/changes", lambda message: message["ended"])
        changes = [change for message in found for change in message["changes"]]
        assert {"position", "rate", "total", "link"} <= {change[2] for change in changes}
        assert found[-1]["changes"] == []
        again = await browser.messages(
            f"/api/runs/k1/changes?after={found[-1]['cursor']}", lambda message: message["ended"]
        )
        assert [message["changes"] for message in again] == [[]]
        async with browser.asking("/api/runs/k1/changes", headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.headers["Content-Encoding"] == "gzip"
            assert (await answer.content.readany()).startswith(b"id: ")
        for wrong, expected in (("x", 400), ("-1", 400), ("7", 410), ("9" * 30, 400)):
            assert (await browser.get(f"/api/runs/k1/changes?after={wrong}"))[0] == expected

    browse(tmp_path, act)


def test_a_run_that_goes_on_is_followed_until_its_end(tmp_path: Path) -> None:
    directory = run_directory.create(tmp_path, "live", "l1")
    journal = Journal.create(directory.journal)
    finished = known(tmp_path / "elsewhere")

    async def act(browser: Browser) -> None:
        reading = asyncio.create_task(
            browser.messages("/api/runs/l1/changes", lambda message: message["ended"])
        )
        _, found = await browser.get("/api/runs")
        assert found["runs"][0]["state"] == "running"
        await asyncio.sleep(0.3)
        for path in finished.path.iterdir():
            if path.name not in ("journal.jsonl", "manifest.json"):
                path.rename(directory.path / path.name)
        manifest = finished.manifest.read_text().replace('"k1"', '"l1"')
        for file in directory.path.glob("nodes/*/segments/*.jsonl"):
            file.write_bytes(file.read_bytes().replace(b'"run":"k1"', b'"run":"l1"'))
        directory.manifest.write_text(manifest)
        await asyncio.sleep(0.5)
        journal.close()
        found = await asyncio.wait_for(reading, 30)
        assert sum(len(message["changes"]) for message in found) > 500

    browse(tmp_path, act)


def test_pictures_are_found_by_the_plan_and_checked(tmp_path: Path) -> None:
    run = known(tmp_path)
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(JPEG + b"secret" + JPEG)
    frames = run.nodes / "n9" / "frames" / "sink-0"
    frames.mkdir(parents=True)
    (frames / "latest.jpg").write_bytes(JPEG)
    (frames / "00000003.jpg").write_bytes(JPEG)
    (frames / "00000007.jpg").write_bytes(b"\xff\xd8\xffseven\xff\xd9")
    (frames / "00000009.jpg").symlink_to(secret)
    (frames / "00000011.jpg").write_bytes(b"<script>no picture</script>")
    other = run.nodes / "n9" / "frames" / "sink-1"
    other.symlink_to(frames)

    async def act(browser: Browser) -> None:
        at = "/api/runs/k1/pictures/query/sink%2F0"
        async with browser.asking(at) as answer:
            assert (answer.status, answer.content_type) == (200, "image/jpeg")
            assert await answer.read() == JPEG
        async with browser.asking(f"{at}?frame=8") as answer:
            assert answer.headers["X-Rove-Frame"] == "7"
            assert b"seven" in await answer.read()
        assert (await browser.get(f"{at}/3"))[1] == JPEG
        assert (await browser.get(f"{at}?frame=1"))[1] == JPEG  # the first one that is kept
        for wrong in (
            f"{at}?frame=9",
            f"{at}?frame=11",
            "/api/runs/k1/pictures/query/sink%2F1",
            "/api/runs/k1/pictures/query/sink%2F2",
            "/api/runs/k1/pictures/query/..%2F..",
            "/api/runs/k1/pictures/other/sink%2F0",
            "/api/runs/nobody/pictures/query/sink%2F0",
        ):
            assert (await browser.get(wrong))[0] == 404, wrong
        assert (await browser.get(f"{at}?frame=x"))[0] == 400

    browse(tmp_path, act)


def test_every_answer_is_guarded_and_names_no_path(tmp_path: Path) -> None:
    known(tmp_path)

    async def act(browser: Browser) -> None:
        for path, expected in (
            ("/", 200),
            ("/api/about", 200),
            ("/nothing", 404),
            ("/api/runs/..", 404),
            ("/api/runs/k1", 404),
            ("/api/fleet", 404),
            ("/metrics", 501),
            ("/sd", 501),
            ("/nodes/n1/metrics", 404),
            ("/%2e%2e/%2e%2e/etc/passwd", 404),
            ("/page/../../pyproject.toml", 404),
        ):
            async with browser.asking(path) as answer:
                text = await answer.text()
                assert answer.status == expected, path
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
                assert "Access-Control-Allow-Origin" not in answer.headers
                assert str(tmp_path) not in text
                if expected != 200:
                    assert list(json.loads(text)) == ["error"]
        assert (await browser.get("/api/runs", method="PUT"))[0] == 405
        assert (await browser.get("/api/runs", method="POST"))[0] == 405
        assert (await browser.get("/api/runs", headers={"Host": "evil.example"}))[0] == 421
        assert (await browser.get("/api/runs", headers={"Sec-Fetch-Site": "cross-site"}))[0] == 403

    browse(tmp_path, act)


def test_with_a_token_only_the_page_itself_can_be_had_without_it(tmp_path: Path) -> None:
    known(tmp_path)

    async def act(browser: Browser) -> None:
        assert browser.address.url.endswith(f"/#token={TOKEN}")
        assert (await browser.get("/"))[0] == 200
        for path in ("/api/runs", "/api/runs/k1/head", "/nothing", "/metrics", "/sd"):
            assert (await browser.get(path))[0] == 401, path
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert (await browser.get("/api/runs", headers=right))[0] == 200
        async with browser.asking(
            "/api/session", method="POST", body=json.dumps({"token": TOKEN}).encode()
        ) as answer:
            assert answer.status == 200
            cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and TOKEN not in cookie
        session = {"Cookie": cookie.split(";")[0]}
        assert (await browser.get("/api/runs", headers=session))[0] == 200
        for body, expected in (
            (b'{"token": "wrong"}', 401),
            (b"{}", 400),
            (b"[" * 9999, 400),
            (b"x" * 70_000, 413),
        ):
            assert (await browser.get("/api/session", method="POST", body=body))[0] == expected
        for _ in range(10):
            await browser.get("/api/runs", headers={"Authorization": "Bearer wrong"})
        assert (await browser.get("/api/runs", headers={"Authorization": "Bearer wrong"}))[0] == 429
        assert (await browser.get("/api/runs", headers=right))[0] == 200
        assert (await browser.get("/api/runs", headers=session))[0] == 200

    browse(Settings(root=tmp_path, token=TOKEN), act)


def test_without_control_nothing_can_be_stopped(tmp_path: Path) -> None:
    known(tmp_path)

    async def act(browser: Browser) -> None:
        assert (await browser.get("/api/runs/k1/stop", method="POST"))[0] == 403
        assert (await browser.get("/api/runs/k1/down", method="POST"))[0] == 403
        assert (await browser.get("/api/runs/k1/stop"))[0] == 405

    browse(tmp_path, act)


HELD = """
import signal, sys, time
from pathlib import Path
from orchestrator.runs.journal import Journal
journal = Journal.create(Path(sys.argv[1]))
asked = []
signal.signal(signal.SIGINT, lambda *_: asked.append(1))
print("held", flush=True)
while not asked:
    time.sleep(0.02)
journal.close()
time.sleep(0.5)
sys.exit(40 + len(asked))
"""


def test_control_stops_the_process_that_holds_the_run_once(tmp_path: Path) -> None:
    directory = run_directory.create(tmp_path, "live", "l1")
    known(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, str(directory.journal)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    own: list[int] = []
    before = signal.signal(signal.SIGINT, lambda *_: own.append(1))
    try:

        async def act(browser: Browser) -> None:
            right = {"Authorization": f"Bearer {TOKEN}"}
            options: dict[str, Any] = {"method": "POST", "headers": right}
            assert (await browser.get("/api/runs/l1/stop", method="POST"))[0] == 401
            assert (await browser.get("/api/runs/k1/stop", **options)) == (200, {"run": "k1", "asked": False})
            assert (await browser.get("/api/runs/l1/stop", **options)) == (200, {"run": "l1", "asked": True})
            assert (await browser.get("/api/runs/l1/stop", **options))[0] == 409
            status, removed = await browser.get("/api/runs/k1/down", **options)
            assert status == 200
            assert [each["run"] for each in removed["removed"]] == ["k1"]

        browse(Settings(root=tmp_path, token=TOKEN, control=True), act)
    finally:
        signal.signal(signal.SIGINT, before)
        process.kill() if process.poll() is None and process.wait(10) is None else None
    assert process.wait(10) == 41  # asked once
    assert own == []


def test_half_open_and_idle_connections_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "REQUEST_S", 0.3)

    async def act(browser: Browser) -> None:
        for begun in (b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: " + browser.host.encode()):
            assert await browser.raw(begun) == b""
        idle = f"GET /api/about HTTP/1.1\r\nHost: {browser.host}\r\n\r\n".encode()
        assert b"200 OK" in await browser.raw(idle)

    browse(tmp_path, act)


def test_connections_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST_OF_THIS_MACHINE", 5)

    async def act(browser: Browser) -> None:
        port = browser.address.port
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        for reader, writer in held:
            writer.write(f"GET /api/about HTTP/1.1\r\nHost: {browser.host}\r\n\r\n".encode())
            await reader.readuntil(b"}\n")
        assert await browser.raw(b"GET / HTTP/1.1\r\n\r\n") == b""
        for _, writer in held:
            writer.close()
        for _ in range(50):
            status = await browser.raw(f"GET / HTTP/1.0\r\nHost: {browser.host}\r\n\r\n".encode())
            if b"200 OK" in status:
                return
            await asyncio.sleep(0.1)
        raise AssertionError("places are not given back")

    browse(tmp_path, act)


def test_who_may_not_ask_cannot_take_all_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST_OF_THIS_MACHINE", 5)

    async def act(browser: Browser) -> None:
        host, port = browser.host, browser.address.port
        right = f"GET /api/about HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        own_reader, own = await asyncio.open_connection("127.0.0.1", port)
        own.write(right)
        assert b"200 OK" in await own_reader.readuntil(b"}\n")
        begun = (b"GET / HT", b"", f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        held = []
        for number in range(12):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begun[number % len(begun)])
            held.append((reader, writer))
        async with asyncio.timeout(10):
            with suppress(ConnectionResetError):
                assert await held[0][0].read() == b""  # the oldest has made room
        assert (await browser.get("/api/runs", headers={"Authorization": f"Bearer {TOKEN}"}))[0] == 200
        own.write(right)
        assert b"200 OK" in await own_reader.readuntil(b"}\n")  # its place was not given away
        for _, writer in (*held, (own_reader, own)):
            writer.close()

    browse(Settings(root=tmp_path, token=TOKEN), act)


def test_a_reader_that_does_not_read_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "STALLED_S", 0.3)
    monkeypatch.setattr(listening, "_SWEEP_S", 0.1)
    run = known(tmp_path)
    frames = run.nodes / "n9" / "frames" / "sink-0"
    frames.mkdir(parents=True)
    (frames / "latest.jpg").write_bytes(b"\xff\xd8\xff" + os.urandom(3_900_000) + b"\xff\xd9")

    async def act(browser: Browser) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", browser.address.port, limit=1000)
        ask = f"GET /api/runs/k1/pictures/query/sink%2F0 HTTP/1.1\r\nHost: {browser.host}\r\n\r\n".encode()
        writer.write(ask * 4)
        await asyncio.sleep(2)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(4 * 3_900_000)
        writer.close()

    browse(tmp_path, act)


def test_what_is_no_http_gets_one_line(tmp_path: Path) -> None:
    async def act(browser: Browser) -> None:
        for data in (
            b"\x00\x01\x02\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET / HTTP/1.1\r\nBad Name: x\r\n\r\n",
            b"a" * 10_000,
        ):
            answer = await browser.raw(data)
            assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
            assert answer.endswith(b'{"error":"this is not a request"}\n')
            assert b"default-src 'none'" in answer

    browse(tmp_path, act)


def test_the_page_is_served_from_a_table(tmp_path: Path) -> None:
    async def act(browser: Browser) -> None:
        async with browser.asking("/", headers={"Accept-Encoding": "identity"}) as answer:
            assert answer.content_type == "text/html"
            plain = await answer.read()
        asked = f"GET / HTTP/1.1\r\nHost: {browser.host}\r\nAccept-Encoding: gzip\r\n"
        sent = await browser.raw(f"{asked}Connection: close\r\n\r\n".encode())
        assert gzip.decompress(sent.partition(b"\r\n\r\n")[2]) == plain
        assert (await browser.get("/", method="HEAD")) == (200, b"")

    browse(tmp_path, act)


def test_a_thousand_runs_are_listed_from_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counted(path: Path) -> dict[str, Any]:
        read.append(path)
        return read_object(path)

    monkeypatch.setattr(catalogue, "read_object", counted)
    monkeypatch.setattr(catalogue, "FRESH_S", 0.0)
    monkeypatch.setattr(catalogue, "REST", 0)
    template = known(tmp_path / "one")
    names = ("journal.jsonl", "verdict.json", "spec.yaml")
    for number in range(1000):
        folder = tmp_path / "runs" / f"e{number % 20}" / f"r{number}"
        folder.mkdir(parents=True)
        for name in names:
            os.link(template.path / name, folder / name)

    async def act(browser: Browser) -> None:
        for _ in range(3):
            assert len((await browser.get("/api/runs"))[1]["runs"]) == 1000
        assert len(read) == 1000
        (tmp_path / "runs" / "e1" / "r1" / "verdict.json").unlink()
        rows = {row["id"]: row for row in (await browser.get("/api/runs"))[1]["runs"]}
        assert (rows["r1"]["state"], rows["r1"]["verdict"]) == ("died", None)
        assert len(read) == 1001

    browse(tmp_path / "runs", act)
