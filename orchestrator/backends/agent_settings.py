"""Makes the configuration of an agent and its process, for every backend."""

import random
from collections.abc import Mapping
from pathlib import PurePath

from node_agent.agent.config import AgentConfig, Watch
from node_agent.agent.process import ProcessConfig
from node_agent.apps.base import AppConfig
from node_agent.ports import Address
from node_agent.transport.keys import keys_of
from orchestrator.planning.application import AppPlan
from orchestrator.planning.planned import PlannedRun
from orchestrator.services.base import RoutingService
from orchestrator.services.costs import link_state_of
from orchestrator.spec.backends import Traits

DATA_PORT = 7400
NEIGHBOURS_S = 2.0


def agent_config(
    run: PlannedRun,
    run_id: str,
    node: str,
    hosts: Mapping[str, str],
    secret: bytes,
    apps: Mapping[str, AppPlan],
) -> AgentConfig:
    """Makes a node's agent config. ``hosts``: each node's address. ``apps``: plans with the node's paths.

    ``secret`` is the run's: a node gets only the keys that it shares with other nodes.
    """
    return AgentConfig(
        run=run_id,
        node=node,
        addresses={peer: Address(host, DATA_PORT) for peer, host in hosts.items()},
        keys=keys_of(secret, run_id, node, hosts),
        apps=tuple(AppConfig.of(name, plan.kind, plan.agent_config(node)) for name, plan in apps.items()),
        cores=run.experiment.topology.cores()[node],
        node_costs=run.experiment.topology.node_costs(),
        watch=_watch(run.experiment.traits, run.seeks_replicas()),
    )


def _watch(traits: Traits, is_asked: bool = False) -> Watch | None:
    """In virtual time nobody asks an agent anything, but for faults that hit what is in use (``is_asked``);
    its records are the same whoever looks.
    """
    if traits.virtual_time and not is_asked:
        return None
    return Watch(neighbours_period=None if traits.knows_links else NEIGHBOURS_S)


def process_config(
    run: PlannedRun,
    agent: AgentConfig,
    host: str,
    service: RoutingService | None,
    directory: PurePath,
) -> ProcessConfig:
    """``host``: the node's address; ``directory``: where the node stores its files, on the node."""
    return ProcessConfig(
        agent=agent,
        host=host,
        segments=str(directory / "segments"),
        link_state=link_state_of(run.experiment.routing, service),
        overhead=service.overhead() if service is not None else None,
        seed=random.Random(f"agent/{run.experiment.seed}/{agent.node}").getrandbits(53),
        directory=str(directory),
        kernel_routes=service is not None and service.has_daemon,
    )


def routing_seed(experiment_seed: int, node: str) -> int:
    return random.Random(f"routing/{experiment_seed}/{node}").getrandbits(53)
