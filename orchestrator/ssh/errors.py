"""What can go wrong between here and a node over SSH: a type for each case that callers tell apart."""

from orchestrator.errors import RoveError
from orchestrator.foreign_text import one_line


class SshError(RoveError):
    """``reason`` is the message without the host's name, for those who state that by themselves.

    A host's own words are often a part of it: it is one line of plain text, whatever they are.
    """

    def __init__(self, host: str, reason: str) -> None:
        self.host = host
        self.reason = one_line(reason)
        super().__init__(f"{host}: {self.reason}")


class NodeFailed(SshError):
    """An error that nobody foresaw while one host was dealt with. ``__cause__`` is that error."""


class Unreachable(SshError):
    """Nobody answers, or not any more. It may help to try again."""


class HostKeyUnknown(SshError):
    """The host was never enrolled."""


class HostKeyChanged(SshError):
    """The host does not have the key that it was enrolled with: it may be another machine."""


class LoginRefused(SshError):
    """The host does not accept this user with these keys, or there is no key to try."""


class SudoRefused(SshError):
    """The step needs privilege, and sudo does not give it without a password."""


class CommandTimeout(SshError):
    """The command did not end in time; it was stopped on the node as well."""


class CommandFailed(SshError):
    """The command ended with another status than 0, where that is a failure."""


class TransferBroken(SshError):
    """The file did not arrive. What did arrive is kept, and the next attempt goes on from there."""


class DiskFull(SshError):
    """There is no room for the file on the receiving side."""
