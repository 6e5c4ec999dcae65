"""Rooms are layers: each imports only rooms that are listed before it. This is the one table of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
NODE_AGENT = (
    "node_agent",  # the version
    "node_agent.extensions",
    "node_agent.ports",
    "node_agent.model",
    "node_agent.telemetry",
    "node_agent.host",
    "node_agent.transport",
    "node_agent.linkstate",
    "node_agent.manet",
    "node_agent.olsr",
    "node_agent.aodv",
    "node_agent.migration",
    "node_agent.apps",
    "node_agent.apps.dataflow",
    "node_agent.apps.flows",
    "node_agent.apps.comet",
    "node_agent.apps.mcep",
    "node_agent.agent",
    "node_agent.supervisor",
    "node_agent.query",  # what files of users import: this, switching and testing
    "node_agent.switching",
    "node_agent.testing",
)
ORCHESTRATOR = (
    "orchestrator",  # errors, names and text from other machines
    "orchestrator.spark",
    "orchestrator.model",
    "orchestrator.contacts",
    "orchestrator.runs",
    "orchestrator.clocks",
    "orchestrator.results",
    "orchestrator.spec",
    "orchestrator.mobility",
    "orchestrator.radio",
    "orchestrator.services",
    "orchestrator.planning",
    "orchestrator.ssh",
    "orchestrator.deployment",
    "orchestrator.host_load",
    "orchestrator.apps",
    "orchestrator.apps.dataflow",
    "orchestrator.apps.flows",
    "orchestrator.apps.comet",
    "orchestrator.apps.mcep",
    "orchestrator.backends",
    "orchestrator.lifecycle",
    "orchestrator.sweeps",
    "orchestrator.analytics",
    "orchestrator.api",  # importable as rove
    "orchestrator.live",
    "orchestrator.captures",
    "orchestrator.cli",
)
APPLICATIONS = ("dataflow", "flows", "comet", "mcep")
"""They do not import each other."""


def test_each_room_imports_only_rooms_before_it() -> None:
    assert list(violations(ROOT)) == []


def test_every_room_is_in_the_table() -> None:
    found = {room_of(module) for module, _ in modules(ROOT)}
    assert found == {*NODE_AGENT, *ORCHESTRATOR}


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        (
            "node_agent/transport/keys.py",
            "import node_agent.apps.dataflow.config",
            "node_agent.transport.keys imports node_agent.apps.dataflow",
        ),
        (
            "node_agent/ports/base.py",
            "from orchestrator import errors",
            "node_agent.ports.base imports orchestrator",
        ),
        (
            "orchestrator/spec/units.py",
            "def late() -> None:\n    from orchestrator.cli import main",
            "orchestrator.spec.units imports orchestrator.cli",
        ),
        (
            "orchestrator/apps/flows/planted.py",
            "import orchestrator.apps.dataflow.application",
            "orchestrator.apps.flows.planted imports orchestrator.apps.dataflow",
        ),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, file: str, line: str, complaint: str) -> None:
    before = (ROOT / file).read_text() if (ROOT / file).exists() else ""
    planted = tmp_path / "planted.py"
    planted.write_text(f"{before}\n{line}\n")
    assert list(upward_imports(module_of(Path(file)), planted)) == [complaint]


def violations(root: Path) -> Iterator[str]:
    for module, file in modules(root):
        yield from upward_imports(module, file)


def upward_imports(module: str, file: Path) -> Iterator[str]:
    """``module imports room``, for each import that leads upwards."""
    here = room_of(module)
    for name in imports(ROOT, file):
        there = room_of(name)
        if there != here and not is_allowed(here, there):
            yield f"{module} imports {there}"


def is_allowed(here: str, there: str) -> bool:
    if here.startswith("node_agent"):
        return there in NODE_AGENT[: NODE_AGENT.index(here)] and not _are_siblings(here, there)
    if there.startswith("node_agent"):
        return True
    return there in ORCHESTRATOR[: ORCHESTRATOR.index(here)] and not _are_siblings(here, there)


def _are_siblings(here: str, there: str) -> bool:
    apps = [name.rpartition(".") for name in (here, there)]
    return all(parent.endswith(".apps") and last in APPLICATIONS for parent, _, last in apps)


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    for half in ("node_agent", "orchestrator"):
        for file in sorted((root / half).rglob("*.py")):
            yield module_of(file.relative_to(root)), file


def module_of(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def room_of(module: str) -> str:
    """The most exact room of the table that holds ``module``."""
    fitting = [r for r in (*NODE_AGENT, *ORCHESTRATOR) if module == r or module.startswith(f"{r}.")]
    room = max(fitting, key=len)
    folder = module.split(".")[: room.count(".") + 2]
    holders = ("node_agent", "orchestrator", "node_agent.apps", "orchestrator.apps")
    if room in holders and (ROOT / Path(*folder)).is_dir() and len(folder) > 1:
        return ".".join(folder)  # a room that is not in the table
    return room


def imports(root: Path, file: Path) -> Iterator[str]:
    """All of them, those inside functions too, as modules where they are modules."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if _is_module(root, name) else node.module for name in inside]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in ("node_agent", "orchestrator"))


def _is_module(root: Path, name: str) -> bool:
    path = root.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()
