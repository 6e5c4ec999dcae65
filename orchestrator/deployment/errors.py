"""Errors of deployment; a full disk is ``orchestrator.ssh.errors.DiskFull``, as everywhere."""

from orchestrator.ssh.errors import SshError


class WrongPython(SshError):
    """The node has no Python that agents can run on."""


class CannotDeploy(SshError):
    """A package that the node needs is not available for it, is too old there, or does not load."""
