"""How one host is reached, as a value. It holds the path of a key, never a secret."""

from dataclasses import dataclass
from enum import StrEnum


class Profile(StrEnum):
    """What kind of system a node has."""

    DEBIAN = "debian"
    RASPIOS = "raspios"
    TERMUX = "termux"
    """Android: the app's own sshd and prefix, and nobody is root."""

    @property
    def default_port(self) -> int:
        return 8022 if self is Profile.TERMUX else 22

    @property
    def has_root(self) -> bool:
        return self is not Profile.TERMUX


@dataclass(frozen=True)
class Host:
    """``name`` is what its key is recorded under: a node keeps its identity when its address changes.

    ``key`` is the path of a private key; without one, the SSH agent and the user's usual keys are tried.
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
        """The hosts on the way, this one last."""
        return (*(self.jump.chain() if self.jump else ()), self)


def endpoint(address: str, port: int) -> str:
    """As OpenSSH writes it: the port only where it is not the usual one."""
    return address if port == 22 else f"[{address}]:{port}"
