"""`rove doctor`: checks whether this machine has what Rove needs, and says how to get what is missing."""

import os
import shutil
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from orchestrator.cli.output import JsonFlag, console, print_json
from orchestrator.cli.references import DEFAULT_ROOT, RunsDir
from orchestrator.errors import EXIT_FAILED, RoveError
from orchestrator.lifecycle.teardown import State, state_of
from orchestrator.runs.run_directory import all_runs

if TYPE_CHECKING:
    from orchestrator.services.base import Executable, RoutingService

OLDEST_PYTHON = (3, 11)
LEAST_DISK_BYTES = 1 << 30
LEAST_MEMORY_BYTES = 2 << 30
PACKAGES = (
    "msgspec",
    "aiohttp",
    "pydantic",
    "PyYAML",
    "pyspark",
    "pyarrow",
    "pandas",
    "matplotlib",
    "rich",
    "typer",
)


class Health(StrEnum):
    OK = "ok"
    WARN = "warn"
    MISSING = "missing"


_STYLES = {Health.OK: "green", Health.WARN: "yellow", Health.MISSING: "red"}


@dataclass(frozen=True)
class Check:
    """``MISSING`` is kept for what `rove run` cannot do without."""

    name: str
    health: Health
    found: str
    advice: str = ""


def doctor(runs_dir: RunsDir = DEFAULT_ROOT, as_json: JsonFlag = False) -> None:
    """Check that this machine has what Rove needs, and say how to get what is missing.

    Exit code 1 only if something that [bold]rove run[/] needs is missing.

    [bold]Examples[/]

      rove doctor

      rove doctor --json
    """
    checks = examine(runs_dir)
    if as_json:
        print_json({"checks": [asdict(check) for check in checks]})
    else:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for heading in ("check", "", "found", "what to do"):
            table.add_column(heading)
        for check in checks:
            health = f"[{_STYLES[check.health]}]{check.health}[/]"
            table.add_row(check.name, health, check.found, check.advice)
        console.print(table)
    if any(check.health is Health.MISSING for check in checks):
        raise typer.Exit(EXIT_FAILED)


def examine(runs_dir: Path) -> list[Check]:
    machine = [_python(), *_packages(), _java(), _cores(), _memory()]
    places = [_runs_directory(runs_dir), _disk(runs_dir), _leftovers(runs_dir)]
    return [*machine, *places, *_namespaces(), _ssh(), *_routing_daemons(), *_applications(), _chromium()]


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= OLDEST_PYTHON:
        return Check("Python", Health.OK, found)
    return Check("Python", Health.MISSING, found, "install Python 3.11 or later")


def _packages() -> list[Check]:
    absent = [name for name in PACKAGES if _installed(name) is None]
    if absent:
        advice = "pip install 'rove-testbed[orchestrator]'"
        return [Check(f"package {name}", Health.MISSING, "not installed", advice) for name in absent]
    spark = _installed("pyspark")
    return [Check("packages", Health.OK, f"{len(PACKAGES)} installed, pyspark {spark}")]


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _java() -> Check:
    from orchestrator.spark.java import find_java

    try:
        java = find_java()
    except RoveError as error:
        return Check("Java", Health.MISSING, "none that Spark can use", str(error))
    return Check("Java", Health.OK, f"{java.version} ({java.executable})")


def _cores() -> Check:
    cores = len(os.sched_getaffinity(0))
    if cores >= 2:
        return Check("cores", Health.OK, str(cores))
    return Check("cores", Health.WARN, str(cores), "runs of a sweep will go one after the other")


def _memory() -> Check:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size >= LEAST_MEMORY_BYTES:
        return Check("memory", Health.OK, _gigabytes(size))
    return Check(
        "memory", Health.WARN, _gigabytes(size), "Spark wants 2 GB: keep runs short, or use --no-analyze"
    )


def _runs_directory(root: Path) -> Check:
    nearest = _nearest_existing(root)
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return Check("runs directory", Health.OK, f"{root} can be written")
    advice = "choose another with --runs-dir or ROVE_RUNS_DIR"
    return Check("runs directory", Health.MISSING, f"{root} cannot be written", advice)


def _disk(root: Path) -> Check:
    free = shutil.disk_usage(_nearest_existing(root)).free
    if free >= LEAST_DISK_BYTES:
        return Check("disk", Health.OK, f"{_gigabytes(free)} free")
    return Check(
        "disk", Health.WARN, f"{_gigabytes(free)} free", f"make room where {root} is, or use --runs-dir"
    )


def _leftovers(root: Path) -> Check:
    dead = [run.id for run in all_runs(root) if state_of(run) is State.DEAD]
    if not dead:
        return Check("leftovers", Health.OK, "no dead runs")
    return Check("leftovers", Health.WARN, f"dead: {', '.join(dead)}", "rove down")


def _namespaces() -> list[Check]:
    """Only the backend netns needs them."""
    from orchestrator.backends.netns.checks import checks

    return [
        Check(f"netns: {check.name}", Health.OK if check.ok else Health.WARN, _works(check.ok), check.advice)
        for check in checks()
    ]


def _routing_daemons() -> list[Check]:
    """Checks the optional daemons of other projects; Rove's own are part of Rove."""
    from orchestrator.services.registry import service_kind
    from orchestrator.spec.routing import ROUTING_SERVICES

    services = map(service_kind, ROUTING_SERVICES)
    programs = {program: service for service in services for program in service.executables}
    return [_routing_daemon(service, program) for program, service in programs.items()]


def _routing_daemon(service: "type[RoutingService]", program: "Executable") -> Check:
    name = f"routing: {service.protocol}"
    if not program.lacking:
        return Check(name, Health.OK, program.path or "")
    found = f"{', '.join(program.lacking)} not found"
    if program.path is not None:
        found = f"{program.path}, but {found}"
    advice = f"only for protocol: {service.protocol}, here with backend netns: {program.advice}"
    return Check(name, Health.WARN, found, advice)


def _ssh() -> Check:
    """Only the backends ssh and core need keys."""
    from orchestrator.ssh.authentication import usual_keys

    agent = ["an SSH agent"] if os.environ.get("SSH_AUTH_SOCK") else []
    if found := [*agent, *map(str, usual_keys())]:
        return Check("ssh: keys", Health.OK, ", ".join(found))
    advice = "only for real nodes: ssh-keygen -t ed25519, or name a key in the topology (docs/nodes.md)"
    return Check("ssh: keys", Health.WARN, "neither an SSH agent nor a key in ~/.ssh", advice)


def _applications() -> list[Check]:
    """What only some applications need."""
    from orchestrator.planning.application import application
    from orchestrator.spec.application import APPLICATIONS

    return [
        Check(each.name, Health.WARN, each.found, each.advice)
        if each.lacking
        else Check(each.name, Health.OK, each.found)
        for kind in APPLICATIONS
        for each in application(kind).requirements()
    ]


def _works(ok: bool) -> str:
    return "works" if ok else "does not work"


def _chromium() -> Check:
    if found := shutil.which("chromium") or shutil.which("chromium-browser"):
        return Check("Chromium", Health.OK, found)
    return Check("Chromium", Health.WARN, "not found", "only for browser tests: apt install chromium")


def _nearest_existing(path: Path) -> Path:
    path = path.resolve()
    return next(parent for parent in (path, *path.parents) if parent.exists())


def _gigabytes(size: int) -> str:
    return f"{size / (1 << 30):.1f} GB"
