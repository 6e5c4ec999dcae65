"""What Rove says if Spark does not start."""

import subprocess

import pytest

from orchestrator.errors import RoveError
from orchestrator.spark import session
from orchestrator.spark.cluster import HERE, Master, parse_master

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]


@pytest.mark.parametrize(
    ("master", "seconds", "said"),
    [
        (HERE, 0.0, "on this machine within 0 s: it is busy"),
        (HERE, 60.0, "on this machine: perhaps it lacks memory"),
        (parse_master("spark://far:7077"), 60.0, "with spark://far:7077: is that a master of version"),
    ],
)
def test_only_a_master_elsewhere_is_asked_for_its_version(
    master: Master, seconds: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "START_TIMEOUT_S", seconds)
    process = subprocess.Popen(["sleep", "60"])
    try:
        with (
            pytest.raises(RoveError, match=said) as caught,
            session._bounded_start(process, master),
        ):
            if not seconds:
                process.wait(20)
            raise ConnectionRefusedError("refused")
    finally:
        process.kill()
        process.wait()
    assert str(caught.value).endswith("(refused)")
