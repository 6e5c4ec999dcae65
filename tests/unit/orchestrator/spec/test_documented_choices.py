"""The tables of docs/experiments.md list what the registries hold, no more and no less."""

import re
from pathlib import Path

from orchestrator.services.registry import service_kind
from orchestrator.spec.backends import AUTO, BACKENDS
from orchestrator.spec.mobility import MOBILITY_MODELS
from orchestrator.spec.pathloss import PATH_LOSS_MODELS
from orchestrator.spec.routing import ROUTING_SERVICES

GUIDE = (Path(__file__).parents[4] / "docs" / "experiments.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """Of the table that begins with ``heading``: cells in their order."""
    table = GUIDE[GUIDE.index(heading) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def words(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def test_mobility_models() -> None:
    assert [words(row[0])[0] for row in rows("| model | parameters |\n| --- | --- |\n| `random")] == [
        *MOBILITY_MODELS
    ]


def test_path_losses() -> None:
    assert [words(row[0])[0] for row in rows("| `pathloss: {model: …}` |")] == [*PATH_LOSS_MODELS]


def test_protocols_with_their_backends() -> None:
    told = {words(row[0])[0]: words(row[2]) or [*BACKENDS] for row in rows("| protocol | what it is |")}
    runs_on = {
        name: {backend for backend in BACKENDS if service_kind(name).runs_on(BACKENDS[backend].traits)}
        for name in ROUTING_SERVICES
    }
    assert {name: {*backends} for name, backends in told.items()} == runs_on


def test_backends() -> None:
    (row,) = re.findall(r"^\| `backend` \|.*$", GUIDE, flags=re.MULTILINE)
    assert {*BACKENDS, AUTO} <= {*words(row)}
