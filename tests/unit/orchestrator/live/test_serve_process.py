import json
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from orchestrator.errors import BadInput
from orchestrator.live.server.process import Address, Settings, token_for
from tests.synthetic_runs import known_run
from tests.unit.rove_process import PATIENCE_S, command, environment, experiment_file, rove

pytestmark = pytest.mark.unit


def serve(root: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("serve", "--port", "0", "--json", *options),
        env=environment(root),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_says_where_it_listens_and_ends_at_a_signal(tmp_path: Path) -> None:
    known_run(tmp_path, run="k1").write()
    with serve(tmp_path, "k1") as process:
        assert process.stdout is not None and process.stderr is not None
        started = json.loads(process.stdout.readline())
        assert started["url"] == f"{started['address']}?run=k1"
        with urllib.request.urlopen(f"{started['address']}api/runs", timeout=PATIENCE_S) as answer:
            assert [row["id"] for row in json.load(answer)["runs"]] == ["k1"]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == ""


def test_it_ends_while_browsers_watch(tmp_path: Path) -> None:
    known_run(tmp_path, run="k1").write()
    with serve(tmp_path, "k1") as process:
        assert process.stdout is not None and process.stderr is not None
        address = json.loads(process.stdout.readline())["address"]
        with urllib.request.urlopen(f"{address}api/runs/k1/changes", timeout=PATIENCE_S) as stream:
            assert stream.readline().startswith(b"id: ")
            process.send_signal(signal.SIGINT)
            while stream.readline():
                pass
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == ""


def test_it_ends_with_its_input_if_told_so(tmp_path: Path) -> None:
    with serve(tmp_path, "--while-input") as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline()
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


def test_beside_a_run_it_takes_another_port_if_one_is_in_use(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with serve(tmp_path, "--port", str(taken), "--while-input") as process:
            assert process.stdout is not None and process.stdin is not None
            assert json.loads(process.stdout.readline())["port"] != taken
            process.stdin.close()
            assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nobody",), "no run 'nobody'"),
        (("--host", "203.0.113.7", "--port", "0"), "cannot listen on 203.0.113.7"),
        (("a.yaml", "b.yaml"), "one topology at a time"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    found = rove(tmp_path, "serve", *arguments)
    assert found.returncode == 2
    assert complaint in found.stderr
    assert "Traceback" not in found.stderr


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with serve(tmp_path) as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        found = rove(tmp_path, "serve", "--port", str(port))
        assert found.returncode == 2
        assert "choose another --port" in found.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_who_needs_a_token() -> None:
    assert token_for(Settings()) is None
    assert token_for(Settings(host="::1")) is None
    made = {token_for(Settings(host=host)) for host in ("0.0.0.0", "192.168.1.2", "::", "lab.example")}
    assert None not in made and len(made) == 4
    assert token_for(Settings(control=True)) is not None
    assert token_for(Settings(wants_token=True)) is not None
    assert token_for(Settings(token="t" * 16)) == "t" * 16
    with pytest.raises(BadInput, match="at least 16"):
        token_for(Settings(token="short"))


def test_the_token_is_behind_the_fragment() -> None:
    assert Address("127.0.0.1", 80, None).url == "http://127.0.0.1:80/"
    assert Address("::1", 80, "abc").url == "http://[::1]:80/#token=abc"
    assert Address("0.0.0.0", 80, None).base == "http://127.0.0.1:80/"
    assert Address("0.0.0.0", 80, "abc").elsewhere == f"http://{socket.gethostname()}:80/#token=abc"
    assert Address("127.0.0.1", 80, None).elsewhere is None
    assert Address("127.0.0.1", 80, "abc", "?run=r").url == "http://127.0.0.1:80/?run=r#token=abc"


def test_a_run_can_have_its_page_beside_it(tmp_path: Path) -> None:
    file = experiment_file(tmp_path, duration=5, warmup=1)
    found = rove(tmp_path, "run", str(file), "--no-analyze", "--ui", "--run-id", "r1")
    assert found.returncode == 0, found.stderr
    assert "Watch it: http://127.0.0.1:" in found.stderr
    assert "To see it again: rove serve r1\n" in found.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_page_stays_until_somebody_asks_and_the_exit_code_is_the_runs(
    tmp_path: Path, number: signal.Signals
) -> None:
    file = experiment_file(tmp_path, duration=5, warmup=1)
    running = subprocess.Popen(
        command("run", str(file), "--no-analyze", "--ui-stay", "--run-id", "r1"),
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    said: list[str] = []
    while "The page stays" not in (line := running.stderr.readline()):
        assert line, said
        said.append(line)
    assert running.poll() is None
    for _ in range(5):  # somebody is in a hurry
        running.send_signal(number)
        time.sleep(0.1)
    assert "To see it again: rove serve r1" in running.stderr.read()
    assert running.wait(PATIENCE_S) == 0


def test_a_replay_is_written_without_spark(tmp_path: Path) -> None:
    directory = known_run(tmp_path, run="k1").write()
    found = rove(tmp_path, "report", "k1", "--replay", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == {"replays": [str(directory / "replay.html")]}
    assert (directory / "replay.html").stat().st_size > 10_000
