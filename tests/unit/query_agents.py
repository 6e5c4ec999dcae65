"""Agents that run one query, as most tests need them."""

from collections.abc import Mapping
from typing import Any

from node_agent.agent.agent import Agent
from node_agent.agent.config import AgentConfig
from node_agent.apps.dataflow.application import Dataflow
from node_agent.apps.dataflow.config import DataflowConfig
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.replicas import Runtime
from node_agent.ports import Address
from node_agent.transport.keys import app_keys, keys_of

_OF_QUERY = {"switching", "limits", "delivery"}


def query_agent(
    node: str,
    plan: DeploymentPlan,
    addresses: Mapping[str, Address],
    keys: Mapping[str, bytes],
    **settings: Any,
) -> AgentConfig:
    """``settings``: of the agent and of its query."""
    of_query = {name: settings.pop(name) for name in _OF_QUERY & settings.keys()}
    apps = (DataflowConfig(plan, **of_query).as_app(),)
    return AgentConfig("run", node, dict(addresses), dict(keys), apps, **settings)


def query_keys(secret: bytes, node: str, nodes: tuple[str, ...]) -> dict[str, bytes]:
    """What ``node`` speaks to the queries of ``nodes`` with."""
    return app_keys(keys_of(secret, "run", node, nodes), "query")


def replica_of(agent: Agent, replica: str) -> Runtime:
    query = agent.apps["query"]
    assert isinstance(query, Dataflow)
    return query._replicas[replica]
