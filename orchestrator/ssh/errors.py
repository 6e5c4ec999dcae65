"""Errors of SSH: a type for each case that callers distinguish."""

from orchestrator.errors import RoveError
from orchestrator.foreign_text import one_line


class SshError(RoveError):
    """``reason``: the message without the host's name, for callers that add it themselves.

    It often contains the host's own words, so it is made one line of plain text.
    """

    def __init__(self, host: str, reason: str) -> None:
        self.host = host
        self.reason = one_line(reason)
        super().__init__(f"{host}: {self.reason}")


class NodeFailed(SshError):
    """An unforeseen error while one host was handled; ``__cause__`` is that error."""


class Unreachable(SshError):
    """The host does not answer, or not any more. It may help to try again."""


class HostKeyUnknown(SshError):
    """The host was never enrolled."""


class HostKeyChanged(SshError):
    """The host does not have the key that it was enrolled with: it may be another machine."""


class LoginRefused(SshError):
    """The host does not accept this user with these keys, or there is no key to try."""


class SudoRefused(SshError):
    """The step needs privilege, and sudo does not grant it without a password."""


class CommandTimeout(SshError):
    """The command did not end in time; it was stopped on the node as well."""


class CommandFailed(SshError):
    """The command ended with a status other than 0, where that is a failure."""


class TransferBroken(SshError):
    """The file did not arrive. The part that arrived is kept, and the next attempt continues from there."""


class DiskFull(SshError):
    """The receiving side has no room for the file."""
