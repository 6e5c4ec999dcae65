"""What an experiment tells an agent's process, wherever the node is."""

import random
from collections.abc import Mapping
from pathlib import PurePath

from node_agent.agent.config import AgentConfig
from node_agent.agent.process import ProcessConfig
from node_agent.apps.dataflow.config import DataflowConfig, Switching
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.switching.exchange import Mode
from node_agent.linkstate.registry import LinkStateConfig
from node_agent.ports import Address
from node_agent.transport.keys import keys_of
from orchestrator.services.base import RoutingService
from orchestrator.spec.experiment import Experiment

DATA_PORT = 7400


def agent_config(
    experiment: Experiment,
    run_id: str,
    node: str,
    plan: DeploymentPlan,
    hosts: Mapping[str, str],
    secret: bytes,
) -> AgentConfig:
    """``hosts``: each node's address. ``secret`` is the run's: a node is given no more than the keys that it
    shares with others.
    """
    switching = experiment.switching
    dataflow = DataflowConfig(
        plan=plan,
        switching=Switching(experiment.rule(), switching.period, Mode(switching.mode)),
        delivery=experiment.delivery.limits(),
    )
    return AgentConfig(
        run=run_id,
        node=node,
        addresses={peer: Address(host, DATA_PORT) for peer, host in hosts.items()},
        keys=keys_of(secret, run_id, node, hosts),
        apps=(dataflow.as_app(),),
        cores=experiment.topology.cores()[node],
        node_costs=experiment.topology.node_costs(),
    )


def process_config(
    experiment: Experiment,
    run_id: str,
    node: str,
    plan: DeploymentPlan,
    hosts: Mapping[str, str],
    secret: bytes,
    service: RoutingService | None,
    directory: PurePath,
) -> ProcessConfig:
    """As ``agent_config``; ``directory``: where, on the node, what it leaves is kept."""
    return ProcessConfig(
        agent=agent_config(experiment, run_id, node, plan, hosts, secret),
        host=hosts[node],
        segments=str(directory / "segments"),
        link_state=service.link_state() if service is not None else LinkStateConfig(),
        overhead=service.overhead() if service is not None else None,
        seed=random.Random(f"agent/{experiment.seed}/{node}").getrandbits(53),
        directory=str(directory),
    )


def routing_seed(experiment_seed: int, node: str) -> int:
    return random.Random(f"routing/{experiment_seed}/{node}").getrandbits(53)
