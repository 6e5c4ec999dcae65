"""Defines the keys ``hosts`` and ``defaults`` of a topology: how to reach each real node, and what system it
has.

SSH keys are named by their paths and passwords are refused, so the file contains no secret.
"""

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from orchestrator.spec.base import Name, Section
from orchestrator.spec.inventory import Host, Profile, endpoint
from orchestrator.spec.problems import Finding, Place, Unusable, did_you_mean, shown, unusable
from orchestrator.spec.setup import ConfiguredSetup, Setup, SetupField

_SECRETS = ("password", "passwd", "passphrase", "secret", "sudo_password", "become_pass")
_KEYS_ONLY = "passwords are not taken: SSH keys only"
_KEYS_HINT = "ssh-copy-id puts your key on the node; then write key: ~/.ssh/id_ed25519, or use an SSH agent"
_ADDRESS = r"[A-Za-z0-9._:%-]{1,253}"
_USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}"
_INTERFACE = r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}"
_JUMP = (
    rf"(?:(?P<user>{_USER})@)?"
    rf"(?:\[(?P<bracketed>{_ADDRESS})\]|(?P<host>[A-Za-z0-9._-]+))"
    r"(?::(?P<port>\d{1,5}))?"
)


def _matching(pattern: str, what: str, example: str) -> BeforeValidator:
    def read(value: Any) -> str:
        if isinstance(value, str) and re.fullmatch(pattern, value):
            return value
        # The text before an @ may be a password.
        quoted = "what is written here" if isinstance(value, str) and "@" in value else shown(value)
        raise unusable(f"{quoted} is not {what}", f"for example {example}")

    return BeforeValidator(read)


def _read_key(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise unusable(f"{shown(value)} is not the path of a key", "for example key: ~/.ssh/id_ed25519")
    if "PRIVATE KEY" in value or "\n" in value:
        raise unusable("this is a key itself, not the path of one", "keep it in a file: ~/.ssh/id_ed25519")
    if not value.startswith(("/", "~/")):
        hint = "for example ~/.ssh/id_ed25519: the key does not move with this file"
        raise unusable(f"{shown(value)} is neither an absolute path nor one from the home directory", hint)
    if value.endswith(".pub"):
        raise unusable(f"{shown(value)} is the public half of the key", f"use {value.removesuffix('.pub')}")
    return value


def _read_manet_address(value: Any) -> str:
    try:
        return str(IPv4Address(value if isinstance(value, str) else ""))
    except AddressValueError:
        raise unusable(f"{shown(value)} is not an IPv4 address", "for example address: 10.77.0.1") from None


def _pattern(pattern: str, description: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$", "description": description})


Address = Annotated[
    str,
    _matching(_ADDRESS, "a host name or an address", "host: 192.168.1.21"),
    _pattern(_ADDRESS, "Where its SSH server is: a name or an address"),
]
Login = Annotated[str, _matching(_USER, "a user's name", "user: pi"), _pattern(_USER, "Who logs in there")]
KeyPath = Annotated[
    str,
    BeforeValidator(_read_key),
    WithJsonSchema({"type": "string", "description": "Path of a private key; without it, the SSH agent"}),
]
Interface = Annotated[
    str,
    _matching(_INTERFACE, "the name of an interface", "interface: wlan0"),
    _pattern(_INTERFACE, "Its interface in the MANET"),
]
ManetAddress = Annotated[
    str,
    BeforeValidator(_read_manet_address),
    WithJsonSchema({"type": "string", "format": "ipv4", "description": "Its address in the MANET"}),
]
SshPort = Annotated[int, Field(strict=True, ge=1, le=65535)]


class Access(Section):
    """Base class of sections that say how to reach a host. It refuses secrets under any name."""

    other_names: ClassVar[dict[str, str]] = {
        "hostname": "host",
        "ip": "host",
        "username": "user",
        "login": "user",
        "identity_file": "key",
        "identity": "key",
        "proxy_jump": "jump",
        "via": "jump",
        "iface": "interface",
    }

    @model_validator(mode="before")
    @classmethod
    def _without_secrets(cls, value: Any) -> Any:
        if isinstance(value, dict):
            found = [key for key in value if str(key).lower() in _SECRETS]
            if found:
                raise Unusable(*(Finding((key,), _KEYS_ONLY, _KEYS_HINT) for key in found))
        return value

    @model_serializer(mode="wrap")
    def _stated(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out values that are not stated, so that defaults also apply in files that Rove writes."""
        return {key: value for key, value in serialize(self).items() if value is not None}


class JumpHost(Access):
    """A host on the way to a node. ``user`` and ``key`` are by default those of the node."""

    host: Address = Field(examples=["gateway.lab"])
    port: SshPort = 22
    user: Login | None = None
    key: KeyPath | None = None


def _read_jump(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = re.fullmatch(_JUMP, value)
    if match is None:
        hint = "write it like jump: pi@gateway.lab:22, without a password"
        raise unusable("this is not the address of a jump host", hint)
    found = match.groupdict()
    host, port = found["bracketed"] or found["host"], found["port"]
    return {"host": host, "user": found["user"]} | ({"port": int(port)} if port else {})


JumpField = Annotated[
    JumpHost | None, BeforeValidator(_read_jump, json_schema_input_type=str | JumpHost | None)
]


class HostDefaults(Access):
    """Values that nodes have in common; a node's own entry overrides them."""

    port: SshPort | None = Field(default=None, description="Of its SSH server; 22, or 8022 with Termux")
    user: Login | None = None
    key: KeyPath | None = None
    jump: JumpField = Field(default=None, description="A host to go through", examples=["pi@gateway.lab"])
    interface: Interface | None = Field(default=None, examples=["wlan0"])
    profile: Literal["debian", "raspios", "termux"] | None = Field(
        default=None, description="What kind of system it is; debian"
    )
    roles: tuple[Name, ...] | None = Field(default=None, examples=[["camera"]])
    setup: SetupField | None = Field(
        default=None, description="What is done to its interface for a run; configured: nothing"
    )
    daemon: Literal["start", "running"] | None = Field(
        default=None, description="Is its routing daemon started for a run, or running already? start"
    )


class HostEntry(HostDefaults):
    """One real node."""

    host: Address = Field(examples=["192.168.1.21"])
    address: ManetAddress | None = Field(default=None, examples=["10.77.0.1"])


Hosts = dict[Name, HostEntry]
DEFAULT_INTERFACE = "wlan0"


def host_of(name: str, stated: dict[str, Any]) -> Host:
    """Returns the host. ``stated`` is its entry with the defaults filled in and without unset values."""
    profile = Profile(stated.get("profile", "debian"))
    user, key = stated["user"], stated.get("key")
    jump = stated.get("jump")
    through = None
    if jump is not None:
        where = jump["host"], jump["port"]
        through = Host(endpoint(*where), *where, jump.get("user", user), jump.get("key", key))
    return Host(name, stated["host"], stated.get("port", profile.default_port), user, key, through, profile)


class RealNode(NamedTuple):
    """A node's entry with the defaults filled in."""

    host: Host
    interface: str
    address: str
    roles: tuple[str, ...]
    setup: Setup = ConfiguredSetup()
    daemon: Literal["start", "running"] = "start"


def real_node(name: str, entry: HostEntry, defaults: HostDefaults, address: str) -> RealNode:
    """Fills in the defaults.
    ``address`` is the node's address in the MANET unless the entry states another.
    """
    merged = {**defaults.model_dump(), **entry.model_dump()}
    return RealNode(
        host=host_of(name, merged),
        interface=merged.get("interface", DEFAULT_INTERFACE),
        address=merged.get("address", address),
        roles=merged.get("roles", ()),
        setup=entry.setup or defaults.setup or ConfiguredSetup(),
        daemon=merged.get("daemon", "start"),
    )


def host_findings(
    nodes: Iterable[str], hosts: Hosts, defaults: HostDefaults, addresses: dict[str, str]
) -> list[Finding]:
    known = tuple(nodes)
    without = [node for node in known if node not in hosts]
    findings: list[Finding] = []
    owners: dict[str, str] = {}
    for name, entry in hosts.items():
        at: Place = ("hosts", name)
        if name not in known:
            hint = did_you_mean(name, without or known)
            findings.append(Finding(at, f"there is no node {shown(name)}", hint))
            continue
        if entry.user is None and defaults.user is None:
            hint = "write user: pi, here or for all nodes under defaults:"
            findings.append(Finding(at, "it is not said who logs in there", hint))
        address = entry.address or addresses[name]
        if address in owners:
            text = f"{address} is the address of {owners[address]} as well"
            findings.append(Finding((*at, "address"), text, "every node needs its own address in the MANET"))
        owners.setdefault(address, name)
        findings += [
            Finding((*at, *f.at), f.message, f.hint) for f in _setup_findings(entry, defaults, address)
        ]
    return findings


def _setup_findings(entry: HostEntry, defaults: HostDefaults, address: str) -> list[Finding]:
    setup = entry.setup or defaults.setup or ConfiguredSetup()
    if isinstance(setup, ConfiguredSetup):
        return []
    at: Place = ("setup",) if entry.setup is not None else ()
    if (entry.profile or defaults.profile) == "termux":
        text = f"setup: {setup.mode} needs root, and with the profile termux nobody is"
        return [Finding(at, text, "configure its network by hand, and write setup: configured")]
    if setup.mode != "lan" and entry.host == address:
        text = f"{address} is where its SSH server is as well: setting it up would cut the node off"
        return [Finding(at, text, "reach it over another network, or write setup: configured")]
    return []
