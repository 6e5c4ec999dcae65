from itertools import islice
from pathlib import Path

import pytest

from benchmarks.serve_fuzz import SEED, fuzz
from benchmarks.serving.requests import Target, cases
from benchmarks.serving.world import plant, served
from tests.synthetic_runs import known_run

pytestmark = pytest.mark.unit


@pytest.mark.timeout(120)
def test_broken_requests_do_not_hurt_the_server(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    known_run(runs, run="r1").write()
    plant(tmp_path, runs)
    with served(tmp_path, runs) as world:
        found = fuzz(world, 500, 60)
    assert world.process.returncode == 0
    bad = ("tracebacks", "hangs", "files_outside", "server_errors", "without_policy")
    assert {name: found[name] for name in bad} == dict.fromkeys(bad, 0), found
    assert found["answers_afterwards"] == 1
    assert found["answers_ok"]


def test_requests_follow_from_the_seed() -> None:
    target = Target("127.0.0.1:1", "rove=x", "r1", "a", "query", "sink/0")
    once, again = (list(islice(cases(target, SEED), 200)) for _ in range(2))
    assert once == again
    assert {case.manner for case in once} == {"whole", "half-open", "pipelined"}
