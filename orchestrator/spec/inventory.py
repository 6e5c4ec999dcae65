"""Describes how to reach one host, as a value. It holds the path of a key, never a secret."""

from dataclasses import dataclass
from enum import StrEnum


class Profile(StrEnum):
    """The kind of system that a node has."""

    DEBIAN = "debian"
    RASPIOS = "raspios"
    TERMUX = "termux"
    """Android. The app has its own sshd and prefix, and no process has root's rights."""

    @property
    def default_port(self) -> int:
        return 8022 if self is Profile.TERMUX else 22

    @property
    def has_root(self) -> bool:
        return self is not Profile.TERMUX


@dataclass(frozen=True)
class Host:
    """A host that is reached over SSH. Its key is recorded under ``name``, so a node keeps its identity when
    its address changes.

    ``key`` is the path of a private key. Without one, the SSH agent and the user's usual keys are tried.
    """

    name: str
    address: str
    port: int
    user: str
    key: str | None = None
    jump: "Host | None" = None
    profile: Profile = Profile.DEBIAN

    def __str__(self) -> str:
        return f"{self.user}@{endpoint(self.address, self.port)}"

    def chain(self) -> "tuple[Host, ...]":
        """Returns the hosts on the way to this one, and this one last."""
        return (*(self.jump.chain() if self.jump else ()), self)


def endpoint(address: str, port: int) -> str:
    """Returns the address as OpenSSH writes it: with the port only if it is not 22."""
    return address if port == 22 else f"[{address}]:{port}"
