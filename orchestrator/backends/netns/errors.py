"""Errors of the netns backend."""

from orchestrator.errors import RoveError


class NetworkError(RoveError):
    """The kernel refused a step of bringing the network up or down; the message names the step."""


class ForkServerError(RoveError):
    """A process could not be started on a node, or the fork server is gone."""
