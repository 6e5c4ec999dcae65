"""Turns the error of one node into that node's outcome."""

from collections.abc import Mapping

from orchestrator.errors import RoveError
from orchestrator.runs.backend import NodeOutcome, Status
from orchestrator.ssh.errors import SshError, Unreachable


def outcome_of(node: str, error: RoveError) -> NodeOutcome:
    """Returns the outcome; its reason omits the node's name, which the output shows already."""
    status = Status.UNREACHABLE if isinstance(error, Unreachable) else Status.FAILED
    text = error.reason if isinstance(error, SshError) and error.host == node else str(error)
    return NodeOutcome(node, status, text.removeprefix(f"{node}: "))


def failures(results: Mapping[str, object]) -> dict[str, NodeOutcome]:
    """Returns the outcomes of nodes whose result is an error."""
    return {node: outcome_of(node, found) for node, found in results.items() if isinstance(found, RoveError)}
