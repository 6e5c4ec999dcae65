"""Enrols hosts: reads each host's key, decides whether it can be trusted, and records it.

A key is trusted because its fingerprint was stated, because a person confirms it, or because the user trusts
every new key. A changed key is never trusted without a statement or confirmation.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from orchestrator.errors import BadInput, RoveError
from orchestrator.spec.inventory import Host
from orchestrator.ssh.errors import Unreachable
from orchestrator.ssh.fleet import on_all
from orchestrator.ssh.host_keys import HostKey, KnownHosts
from orchestrator.ssh.host_transport import HostTransport
from orchestrator.ssh.threads import bounded

SCAN_S = 10.0
_GRACE_S = 2.0
_FINGERPRINT = r"SHA256:[A-Za-z0-9+/]{43}"


class Outcome(StrEnum):
    KNOWN = "known"
    RECORDED = "recorded"
    UNCONFIRMED = "unconfirmed"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"

    @property
    def enrolled(self) -> bool:
        return self in (Outcome.KNOWN, Outcome.RECORDED)


class Enrolled(NamedTuple):
    host: Host
    outcome: Outcome
    key: HostKey | None = None
    reason: str = ""


class Presented(NamedTuple):
    """A key to be confirmed; ``recorded``: the host's former key, if it had another."""

    host: Host
    key: HostKey
    recorded: HostKey | None


@dataclass(frozen=True)
class Statement:
    """Fingerprints that the user knows from elsewhere: of certain hosts, and of any host."""

    of: Mapping[str, str] = field(default_factory=dict)
    anyone: frozenset[str] = frozenset()

    @classmethod
    def read(cls, written: Iterable[str], names: Sequence[str]) -> "Statement":
        of: dict[str, str] = {}
        anyone: set[str] = set()
        for text in written:
            name, separator, fingerprint = text.rpartition("=")
            if not re.fullmatch(_FINGERPRINT, fingerprint):
                raise BadInput(
                    f"--fingerprint {text}: not a fingerprint like SHA256:… of 43 characters; "
                    "on the node: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
                )
            if not separator:
                anyone.add(fingerprint)
            elif name in names:
                of[name] = fingerprint
            else:
                raise BadInput(f"--fingerprint {text}: there is no host {name} to enrol")
        return cls(of, frozenset(anyone))

    def about(self, name: str) -> frozenset[str]:
        """Returns the fingerprints that are acceptable for the host, if any are stated."""
        return frozenset({self.of[name]}) if name in self.of else self.anyone


def judge(presented: Presented, statement: Statement, trusting: bool) -> Outcome:
    """Decides whether the key can be trusted. UNCONFIRMED: a person must decide."""
    if stated := statement.about(presented.host.name):
        if presented.key.fingerprint not in stated:
            return Outcome.REFUSED
        return Outcome.KNOWN if presented.key == presented.recorded else Outcome.RECORDED
    if presented.key == presented.recorded:
        return Outcome.KNOWN
    return Outcome.RECORDED if trusting and presented.recorded is None else Outcome.UNCONFIRMED


async def enrol(
    hosts: Iterable[Host],
    known: KnownHosts,
    statement: Statement,
    trusting: bool,
    confirm: Callable[[Sequence[Presented]], bool],
) -> list[Enrolled]:
    """Enrols jump hosts first: hosts behind them are reached through them, once they are known."""
    enrolled: list[Enrolled] = []
    levels = by_distance(hosts)
    for hosts_as_far in levels:
        found = await on_all({host.name: host for host in hosts_as_far}, lambda host: _scan(host, known))
        doubtful: list[Presented] = []
        for host in hosts_as_far:
            key = found[host.name]
            if isinstance(key, RoveError):
                enrolled.append(Enrolled(host, Outcome.UNREACHABLE, None, _reason(host, key)))
                continue
            presented = Presented(host, key, known.key_of(host.name))
            outcome = judge(presented, statement, trusting)
            if outcome is Outcome.UNCONFIRMED:
                doubtful.append(presented)
            else:
                enrolled.append(_settled(presented, outcome, known))
        for asked in _questions(doubtful):
            outcome = Outcome.RECORDED if confirm(asked) else Outcome.UNCONFIRMED
            enrolled += [_settled(presented, outcome, known) for presented in asked]
    outcomes = {one.host.name: one for one in enrolled}
    return [outcomes[host.name] for level in levels for host in level]


def by_distance(hosts: Iterable[Host]) -> list[list[Host]]:
    """Returns all hosts, including jump hosts, by the number of jumps; each once."""
    levels: list[dict[str, Host]] = []
    for host in hosts:
        for distance, on_the_way in enumerate(host.chain()):
            if distance == len(levels):
                levels.append({})
            levels[distance].setdefault(on_the_way.name, on_the_way)
    return [list(level.values()) for level in levels]


def _questions(doubtful: list[Presented]) -> list[list[Presented]]:
    """Groups new keys together; changed ones each alone, so that none is overlooked among many."""
    new = [presented for presented in doubtful if presented.recorded is None]
    changed = [[presented] for presented in doubtful if presented.recorded is not None]
    return ([new] if new else []) + changed


def _settled(presented: Presented, outcome: Outcome, known: KnownHosts) -> Enrolled:
    host, key, recorded = presented
    reason = ""
    match outcome:
        case Outcome.RECORDED:
            known.record(host.name, key)
        case Outcome.REFUSED:
            reason = "this is not the fingerprint that was stated"
        case Outcome.UNCONFIRMED if recorded is not None:
            reason = f"its key has changed (was {recorded.fingerprint}), and nobody confirmed that"
        case Outcome.UNCONFIRMED:
            reason = f"not confirmed: --fingerprint {host.name}={key.fingerprint}"
    return Enrolled(host, outcome, key, reason)


async def _scan(host: Host, known: KnownHosts) -> HostKey:
    transport = HostTransport(host, known)
    try:
        return await bounded(lambda: transport.scan(SCAN_S), transport.close, SCAN_S + _GRACE_S)
    except TimeoutError:
        raise Unreachable(host.name, f"no answer within {SCAN_S:g} s") from None


def _reason(host: Host, error: RoveError) -> str:
    return getattr(error, "reason", str(error)) if getattr(error, "host", None) == host.name else str(error)
