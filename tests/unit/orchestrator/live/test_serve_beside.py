"""What `rove serve` starts beside itself: a Prometheus that hangs, and a browser that others can watch."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.unit.rove_process import PATIENCE_S, command, environment, wait_until

pytestmark = pytest.mark.unit


def program(path: Path, *lines: str) -> None:
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_heard_while_prometheus_starts(tmp_path: Path, number: signal.Signals) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    program(tools / "prometheus", "trap '' TERM", f"echo $$ > {tmp_path}/began", "exec sleep 1000")
    serving = subprocess.Popen(
        command("serve", "--prometheus", "--port", "0", "--json"),
        env={**environment(tmp_path / "runs"), "PATH": f"{tools}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    began = tmp_path / "began"
    wait_until(lambda: began.exists() and bool(began.read_text().strip()), "Prometheus is started")
    serving.send_signal(number)
    out, err = serving.communicate(timeout=15)  # far less than it may take to start
    assert (serving.returncode, out, err) == (0, "", "")
    # If the signal came while it was being started, the kernel ends it when its parent has gone.
    wait_until(lambda: not Path(f"/proc/{began.read_text().strip()}").exists(), "Prometheus is gone")


def test_the_browser_gets_a_private_file_and_not_the_token(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program(
        tmp_path / "browser",
        'file="${1#file://}"',
        f'{{ echo $$; echo "$1"; stat -c %a "$file"; cat "$file"; }} > {seen}.part && mv {seen}.part {seen}',
        "exec sleep 1000 > /dev/null 2>&1",
    )
    (tmp_path / "tmp").mkdir()
    serving = subprocess.Popen(
        command("serve", "--port", "0", "--token", "--open", "--json"),
        env={**environment(tmp_path), "BROWSER": str(tmp_path / "browser"), "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert serving.stdout is not None
    url = json.loads(serving.stdout.readline())["url"]
    assert "#token=" in url
    wait_until(seen.exists, "the browser is started")
    browser, argument, mode, page = seen.read_text().split("\n", 3)
    assert argument.startswith(f"file://{tmp_path}/tmp/rove-") and "token" not in argument
    assert mode == "600"
    assert f'content="0; url={url}"' in page
    serving.send_signal(signal.SIGINT)
    try:
        _, err = serving.communicate(timeout=PATIENCE_S)
    finally:
        os.kill(int(browser), signal.SIGKILL)
    assert (serving.returncode, err) == (0, "")
    assert list((tmp_path / "tmp").iterdir()) == [], "the file is gone"
