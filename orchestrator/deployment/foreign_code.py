"""Finds the distributions that users' code needs: by its imports, and by what packages require."""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from orchestrator.planning.parts import Part

_OWN_IMPORTS = ("node_agent", "orchestrator", "__future__")


def imported(file: Path) -> list[str]:
    """Returns the top-level modules that a Python file imports, besides Python's own and Rove's."""
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


def providing(module: str, known: Iterable[Part]) -> Iterator[Part]:
    """Returns the distributions that provide a module; ``known``: parts that Rove names itself."""
    for part in known:
        if part.module == module:
            yield Part(part.distribution, module)
            return
    for name in _providers().get(module, [])[:1]:
        yield Part(canonicalize_name(name), module)
        yield from dependencies(canonicalize_name(name))


@cache
def _providers() -> Mapping[str, list[str]]:
    return packages_distributions()


def dependencies(name: str) -> Iterator[Part]:
    """Returns a distribution's dependencies that are installed here; others were not needed here either."""
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
