"""The configuration of an agent, and checks whether it can run with it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from node_agent.apps.base import AppConfig, AppKind, Watched
from node_agent.apps.registry import APPLICATIONS
from node_agent.extensions import ExtensionError
from node_agent.extensions.errors import explain
from node_agent.ports import Address
from node_agent.transport.authentication import MIN_KEY
from node_agent.transport.limits import ConnectionLimits


class Watch(Struct, frozen=True):
    """Set if the agent can be watched while it runs, which it cannot in virtual time.

    ``flush_period``: seconds between two writes of buffered records to their file, so that others can read
    them. ``neighbours_period``: seconds between two looks at the node's own links, which are recorded when
    they have changed; None where the true links are known, and recorded elsewhere.
    """

    flush_period: float = 0.25
    neighbours_period: float | None = None


class AgentConfig(Struct, frozen=True):
    """The whole configuration of an agent. ``addresses``: where the first application of each node listens;
    each further one of ``apps`` listens one port higher.

    ``keys``: by node, itself included, the key that this node shares with it (``transport.keys``). A holder
    of a key is taken for that node, so keys are never printed. ``node_costs`` are added to every link that
    leads to the node, in units of the metric. ``cores``: how many computations of applications run at once.
    ``watch``: how it can be watched; None: it counts no metrics.
    """

    run: str
    node: str
    addresses: dict[str, Address]
    keys: dict[str, bytes]
    apps: tuple[AppConfig, ...] = ()
    sample_period: float = 1.0
    overhead_period: float = 5.0
    links: ConnectionLimits = ConnectionLimits()
    cores: int = 1
    node_costs: dict[str, float] = {}
    watch: Watch | None = None

    def __repr__(self) -> str:
        return f"AgentConfig(run={self.run!r}, node={self.node!r})"


class BadConfig(ValueError):
    """The configuration names something that does not exist or cannot be used."""


class ChosenApp(NamedTuple):
    """An application of a configuration, with its kind and the decoded configuration of that kind."""

    name: str
    kind: AppKind
    config: Struct


def check(config: AgentConfig) -> tuple[ChosenApp, ...]:
    """Returns the applications in their order. Raises BadConfig with everything that is wrong."""
    found: list[str] = []
    apps = tuple(_chosen(config.apps, found))
    found += _problems(config, apps)
    for app in apps:
        found += (f"{app.name}: {problem}" for problem in _problems_of(app, config.node))
    if found:
        raise BadConfig(f"agent {config.node} cannot run: {'; '.join(found)}")
    return apps


def _problems_of(app: ChosenApp, node: str) -> Sequence[str]:
    try:
        return app.kind.problems(app.config, node)
    except Exception as error:  # the application may be of another package
        return [explain(error)]


def _chosen(apps: tuple[AppConfig, ...], problems: list[str]) -> Iterator[ChosenApp]:
    """Yields the applications that can be decoded; adds what is wrong with the others to ``problems``."""
    for app in apps:
        try:
            kind = APPLICATIONS[app.kind]
            yield ChosenApp(app.name, kind, msgspec.json.decode(app.config, type=kind.config))
        except (ExtensionError, msgspec.DecodeError) as error:
            problems.append(f"{app.name}: {error}")


def _problems(config: AgentConfig, apps: tuple[ChosenApp, ...]) -> Iterator[str]:
    names = [app.name for app in config.apps]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"there are several applications named {name!r}"
    if "" in names:
        yield "an application has no name"
    for node in dict.fromkeys((config.node, *(node for app in apps for node in app.kind.nodes(app.config)))):
        if node not in config.addresses:
            yield f"node {node} has no address"
        key = config.keys.get(node, b"")
        if len(key) < MIN_KEY:
            yield f"the key shared with node {node} has {len(key)} bytes, and needs {MIN_KEY}"
    if not (config.sample_period > 0 and config.overhead_period > 0):
        yield "periods must be positive"
    if config.watch is not None and not (
        config.watch.flush_period > 0 and (config.watch.neighbours_period or 1.0) > 0
    ):
        yield "periods of watching must be positive"
    if config.cores < 1:
        yield "a node has at least one core"
    if not all(0 <= cost < float("inf") for cost in config.node_costs.values()):
        yield "node costs cannot be negative or infinite"


def watched_hosts(config: AgentConfig, apps: tuple[ChosenApp, ...]) -> Watched:
    """Returns the addresses of the nodes whose costs matter to the applications of this node."""
    watched = [app.kind.watched(app.config, config.node) for app in apps]

    def hosts(nodes: Iterator[str]) -> tuple[str, ...]:
        return tuple(config.addresses[node].host for node in dict.fromkeys(nodes) if node != config.node)

    direct = (node for each in watched for node in each.direct)
    return Watched(hosts(direct), hosts(node for each in watched for node in each.all))
