"""`rove serve` as a process, for tests that look at real runs with a real browser."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.browser.own_network import apart
from tests.unit.rove_process import PATIENCE_S, command


@contextmanager
def served(environment: Mapping[str, str]) -> Iterator[str]:
    """Yields the page's address; ``environment`` says where runs are."""
    with apart():
        process = subprocess.Popen(
            command("serve", "--port", "0", "--json", "--while-input"),
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    assert process.stdout is not None and process.stdin is not None
    try:
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.stdin.close()
        process.wait(PATIENCE_S)
        process.stdout.close()
