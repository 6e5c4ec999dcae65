"""Chooses, for a node and its needs, where each package comes from, and packs the choice as layers.

It tries in this order: a wheel in the wheel house, this machine's own environment if that fits the node, the
package that the node has itself. So all nodes compute with the same versions where possible.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from node_agent.apps.registry import BUILT_IN
from orchestrator.deployment import directories
from orchestrator.deployment.contents import ALSO_KNOWN_AS, Installed, Sources, Wheel
from orchestrator.deployment.errors import CannotDeploy
from orchestrator.deployment.facts import NodeFacts
from orchestrator.deployment.layers import Layer, layer_of
from orchestrator.deployment.needs import Needs
from orchestrator.deployment.tags import fitting, node_tags
from orchestrator.planning.parts import Part

PROJECT = "rove-testbed"
OUR_MODULES = ("node_agent.agent.process", *(name.partition(":")[0] for name in BUILT_IN.values()))


@dataclass(frozen=True)
class OwnPackage:
    """A package that the node has itself, in the directory ``site``."""

    name: str
    version: str
    site: str


@dataclass(frozen=True)
class Bundle:
    """The layers for a node. ``modules`` are imported on the node to test the bundle before it is used."""

    layers: tuple[Layer, ...]
    own: tuple[OwnPackage, ...]
    modules: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Returns a digest that changes whenever other code would run."""
        parts = [
            [layer.digest for layer in self.layers],
            [(own.name, own.version, own.site) for own in self.own],
            self.modules,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def versions(self) -> dict[str, str]:
        """Returns the versions of every distribution that the node runs with, for the manifest."""
        layers = {layer.name: layer.version for layer in self.layers if layer.version}
        return layers | {own.name: own.version for own in self.own}


def bundle_for(facts: NodeFacts, needs: Needs) -> Bundle:
    """Makes a node's bundle. Blocks while it packs layers, so call it in a thread. Raises CannotDeploy."""
    layers = [layer_of(Sources())]
    own: dict[str, OwnPackage] = {}
    modules = [*OUR_MODULES]
    for part in needs.parts:
        chosen = provided(facts, part) or own_package(facts, part)
        if chosen is None:
            if part.required:
                raise CannotDeploy(facts.host, _missing(facts, part))
            continue
        if isinstance(chosen, OwnPackage):
            own[chosen.name] = chosen
        else:
            layers.append(layer_of(chosen, part.only))
        if part.module:
            modules.append(part.module)
    return Bundle(tuple(dict.fromkeys(layers)), tuple(own.values()), tuple(dict.fromkeys(modules)))


def provided(facts: NodeFacts, part: Part) -> Wheel | Installed | None:
    """Returns the package from this machine, if it fits the node."""
    return _wheel(facts, part) or _installed(facts, part)


def own_package(facts: NodeFacts, part: Part) -> OwnPackage | None:
    return next((own for own in _own(facts, part) if _fits(own.version, part.distribution)), None)


def _fits(version: str, distribution: str) -> bool:
    """Says whether the node's version fits; an invalid version fits nothing."""
    try:
        return version in requirement(distribution)
    except InvalidVersion:
        return False


@cache
def _requirements() -> dict[str, SpecifierSet]:
    try:
        lines = requires(PROJECT) or []
    except PackageNotFoundError:
        return {}
    parsed = map(Requirement, lines)
    return {canonicalize_name(each.name): each.specifier for each in parsed if each.specifier}


def requirement(distribution: str) -> SpecifierSet:
    """Returns which versions Rove's own metadata allows."""
    return _requirements().get(distribution, SpecifierSet())


def _wheel(facts: NodeFacts, part: Part) -> Wheel | None:
    tags = node_tags(facts)
    here = Installed.find(part.distribution)
    names = (part.distribution, *ALSO_KNOWN_AS.get(part.distribution, ()))
    usable = []
    for wheel in _wheels(directories.wheel_house(), part.only):
        rank = fitting(wheel.tags, tags)
        if wheel.name in names and rank is not None and wheel.version in requirement(part.distribution):
            same = here is not None and wheel.version == here.version
            usable.append((same, wheel.parsed_version, -rank, wheel))
    return max(usable, key=lambda each: each[:3])[3] if usable else None


def _wheels(house: Path, only: tuple[str, ...]) -> Iterator[Wheel]:
    for path in sorted(house.glob("*.whl")):
        if (wheel := Wheel.read(path, only)) is not None:
            yield wheel


def _installed(facts: NodeFacts, part: Part) -> Installed | None:
    found = Installed.find(part.distribution, part.only)
    if found is None:
        return None
    offered = [tag for tag in found.tags() if found.can_run_with(facts, tag)]
    return found if fitting(offered, node_tags(facts)) is not None else None


def _own(facts: NodeFacts, part: Part) -> Iterator[OwnPackage]:
    for name in (part.distribution, *ALSO_KNOWN_AS.get(part.distribution, ())):
        if name in facts.packages and name in facts.sites:
            yield OwnPackage(name, facts.packages[name], facts.sites[name])


def _missing(facts: NodeFacts, part: Part) -> str:
    wanted = f"{part.distribution}{requirement(part.distribution)}"
    theirs = next((f"its own is {own.version}" for own in _own(facts, part)), "it has none itself")
    text = f"it needs {wanted}, and {theirs}; nothing here fits {facts}"
    if facts.system == "android":
        return f"{text}. Install it there: pip install '{wanted}' (in Termux, pkg install clang first)"
    return (
        f"{text}. Get it with rove enroll TOPOLOGY --wheels; if there is none to be had, put what "
        f"pip wheel --no-deps '{wanted}' makes on such a node into {directories.wheel_house()}"
    )
