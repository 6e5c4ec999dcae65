"""`rove serve --prometheus` as a process, what its Prometheus knows, and back-fills from records."""

import json
import signal
import subprocess
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from node_agent.telemetry.segments import read_records
from orchestrator.live.prometheus.probing import Login
from orchestrator.live.prometheus.service import USER, free_port
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import PATIENCE_S, command

SCRAPE_S = 5


class Served:
    """`rove serve --prometheus` in a process of its own."""

    def __init__(self, environment: Mapping[str, str], *options: str) -> None:
        prometheus = ("--prometheus", "--prometheus-port", str(free_port(0)))
        self.process = subprocess.Popen(
            command("serve", *prometheus, "--port", "0", "--json", *options),
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said, self.process.stderr and self.process.stderr.read()
        document = json.loads(said)
        self.port = int(document["port"])
        self.token: str = document["url"].partition("#token=")[2]
        self.login: Login | None = None
        if "prometheus_password_file" in document:
            self.login = Login(USER, Path(document["prometheus_password_file"]).read_text().strip())
        self.prometheus_port = int(document["prometheus"].rpartition(":")[2])

    def api(self, path: str, **parameters: str) -> Any:
        answer = self.get(self.prometheus_port, f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        document = json.loads(answer[1])
        assert document["status"] == "success", f"{parameters}: {document}"
        return document["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        found = self.api("query", query=expression)
        assert found["resultType"] in ("vector", "matrix"), found
        result: list[dict[str, Any]] = found["result"]
        return result

    def get(self, port: int, path: str) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            headers = {}
            if port == self.prometheus_port and self.login is not None:
                headers["Authorization"] = self.login.header
            elif port == self.port and self.token:
                headers["Authorization"] = f"Bearer {self.token}"
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def prometheus_pid(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        (pid,) = [int(child) for child in children if _name(int(child)) == "prometheus"]
        return pid

    def wait_for(self, expression: str, what: str, patience: float = PATIENCE_S) -> list[dict[str, Any]]:
        deadline = time.monotonic() + patience
        while not (found := self.query(expression)):
            assert time.monotonic() < deadline, f"waited in vain: {what}"
            time.sleep(1)
        return found

    def fired(self, run: str) -> set[tuple[str, str]]:
        """Alerts that fired in a run: their names, with the node or application that they named."""
        found = self.query(f'max_over_time(ALERTS{{alertstate="firing", run="{run}"}}[10m])')
        labels = [each["metric"] for each in found]
        return {(each["alertname"], each.get("node", each.get("app", ""))) for each in labels}

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.communicate()

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        pid = self.prometheus_pid()
        self.close()
        assert not Path(f"/proc/{pid}").exists(), "Prometheus ended with rove serve"


def back_filled(run: RunDirectory, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Exports a run's records, makes blocks of them, and returns the samples of queues in these."""
    output, data = folder / f"{run.id}.om", folder / f"{run.id}-data"
    for line in (
        command("export", run.id, "--openmetrics", "--output", str(output)),
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(output), str(data)],
    ):
        subprocess.run(line, env=dict(environment), check=True, capture_output=True, timeout=120)
    (data / "wal").mkdir(exist_ok=True)  # dump reads what a server left
    match = f'{{__name__="rove_queue_length", job="rove-records", run="{run.id}"}}'
    dump = ["promtool", "tsdb", "dump", f"--match={match}", str(data)]
    return subprocess.run(dump, check=True, capture_output=True, text=True, timeout=120).stdout.splitlines()


def check_complete(run: RunDirectory, nodes: Iterable[str], lines: list[str]) -> None:
    """The back-fill has as many samples of queues as the segment logs have records, on each node."""
    filled = Counter(line.partition('node="')[2].partition('"')[0] for line in lines)
    recorded = Counter(
        node for node in nodes for record in read_records(run.segments(node)) if record["kind"] == "queue"
    )
    assert filled == recorded and recorded


def check_gap(scraped: list[dict[str, Any]], lines: list[str], node: str, begin: float, end: float) -> None:
    """No scrape of ``node`` lies between the two times; records do, about one a second."""
    assert scraped, "the node was scraped before and after"
    assert all(not begin < float(t) < end for each in scraped for t, _ in each["values"])
    times = [int(line.split()[-1]) / 1000 for line in lines if f'node="{node}"' in line]
    assert sum(begin < t < end for t in times) >= (end - begin) / 2, "the gap is closed"
    here = {name: value for name, value in scraped[0]["metric"].items() if name not in ("job", "__name__")}
    assert any(all(f'{name}="{value}"' in line for name, value in here.items()) for line in lines)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
