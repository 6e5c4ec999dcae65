"""Tests are sorted by what they need: the folder names the need, and what the machine lacks is skipped aloud.

With ``--skips-allowed FILE`` (CI) a skip whose reason is not in that list fails the session.

In CI a test that follows real time is tried a second time if it fails: the machine may have stood still, or
its clock was set. What needed it is named at the end, and ``--max-suite-reruns`` bounds how many may.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from orchestrator.backends.netns.checks import checks
from orchestrator.errors import RoveError
from orchestrator.spark.java import find_java
from tests.core import installed as core
from tests.ssh import sshd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTS = Path(__file__).parent

# A busy machine makes an example slow, which is no failure; each test has a timeout.
# In CI examples are the same each time: what fails there fails here.
settings.register_profile(
    "rove", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rove")

# Who is started in the background of a script ignores Ctrl-C, and so would what tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _lacks_java() -> str | None:
    try:
        find_java()
    except RoveError:
        return "needs Java 17 or later"
    return None


def _lacks_chromium() -> str | None:
    return None if shutil.which("chromium") else "needs Chromium"


def _lacks_namespaces() -> str | None:
    """A user namespace would do for Rove itself; the tests look at the whole host, and need root."""
    if os.geteuid() != 0:
        return "needs root"
    lacking = [check.name for check in checks() if not check.ok]
    return f"needs {', '.join(lacking)}" if lacking else None


def _lacks_prometheus() -> str | None:
    found = shutil.which("prometheus") and shutil.which("promtool")
    return None if found else "needs Prometheus"


# Each need: why this machine cannot serve it, or None if it can.
NEEDS: dict[str, Callable[[], str | None]] = {
    "unit": lambda: None,
    "kernel": _lacks_namespaces,
    "ssh": sshd.lacking,
    "core": core.lacking,
    "spark": _lacks_java,
    "browser": _lacks_chromium,
    "extension": lambda: None,
    "prometheus": _lacks_prometheus,
}

# What tests share and therefore run in one worker for: the Spark session, the host's namespaces, servers.
SHARES = {
    "spark": "spark",
    "browser": "spark",
    "extension": "spark",
    "kernel": "namespaces",
    "ssh": "ssh",
    "core": "core",
}


# These follow real time. With several workers, all others work beside them at a low priority.
REAL_TIME = ("kernel", "ssh", "core")
PRIORITY = os.getpriority(os.PRIO_PROCESS, 0)
LOW = 10

# These wait for processes of their own, by the clock. The same code in virtual time gives the same each time.
WAITING = (*REAL_TIME, "spark", "browser", "extension", "prometheus")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Sets the priority of what the test does and starts. Only root can raise it again."""
    if hasattr(item.config, "workerinput"):
        with suppress(PermissionError):
            behind = 0 if need_of(item) in REAL_TIME else LOW
            os.setpriority(os.PRIO_PROCESS, 0, min(19, PRIORITY + behind))


@pytest.fixture(autouse=True)
def same_directory() -> Iterator[None]:
    """Brings a test that went elsewhere back, so that the next one finds its files and modules."""
    before = Path.cwd()
    yield
    os.chdir(before)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One session for all tests that need Spark: to start it takes longer than to run them."""
    from orchestrator.spark.session import spark_session

    with spark_session() as session:
        yield session


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--skips-allowed",
        metavar="FILE",
        help="fail if a test is skipped for a reason that is not a line of FILE",
    )


def need_of(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needs = [need_of(item) for item in items]
    lacking = {need: NEEDS[need]() for need in dict.fromkeys(needs)}
    for item, need in zip(items, needs, strict=True):
        item.add_marker(need)
        if need in WAITING and "CI" in os.environ:
            item.add_marker(pytest.mark.flaky(reruns=1))
        if reason := lacking[need]:
            item.add_marker(pytest.mark.skip(reason=reason))


class ByShare(LoadScopeScheduling):  # type: ignore[misc]
    """Tests that share something go to the same worker, all others where there is time.

    Not by marks and --dist loadgroup: pytest 9.2 hides these from xdist 3.8 (pytest-xdist, issue 1386).
    """

    def _split_scope(self, nodeid: str) -> str:
        need = Path(nodeid.partition("::")[0]).parts[1]
        return SHARES.get(need, nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByShare | None:
    return ByShare(config, log) if config.getvalue("dist") == "loadgroup" else None


_skipped: dict[str, str] = {}


def _note_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped:
        return
    if isinstance(report.longrepr, tuple):
        _skipped[report.nodeid] = report.longrepr[2].removeprefix("Skipped: ")
    else:  # an expected failure is a test that does not count either
        _skipped[report.nodeid] = f"xfail: {getattr(report, 'wasxfail', '')}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note_skip(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note_skip(report)


def _undue_skips(config: pytest.Config) -> dict[str, str]:
    listed = config.getoption("--skips-allowed")
    if listed is None or hasattr(config, "workerinput"):
        return {}
    lines = Path(listed).read_text().splitlines()
    allowed = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    return {test: reason for test, reason in _skipped.items() if reason not in allowed}


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _undue_skips(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.write_line(report.longreprtext)
        terminalreporter.write_line(f"failed at the first try: {report.nodeid}", yellow=True)
    for test, reason in _undue_skips(config).items():
        terminalreporter.write_line(f"skipped but not allowed to be: {test}: {reason}", red=True)
