"""Logs in with a key: the one that the inventory names, or those of the SSH agent and of ~/.ssh."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import paramiko
from paramiko.ssh_exception import AuthenticationException, PasswordRequiredException, SSHException

from orchestrator.spec.inventory import Host
from orchestrator.ssh.errors import LoginRefused

_USUAL_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def log_in(transport: paramiko.Transport, host: Host) -> None:
    """Blocks, each attempt for at most ``transport.auth_timeout``. Raises LoginRefused."""
    tried = 0
    for key in _keys(host):
        tried += 1
        try:
            further = transport.auth_publickey(host.user, key)
        except AuthenticationException:
            if not transport.is_active():
                break
            continue
        except (SSHException, EOFError, OSError):
            break
        if further:
            raise LoginRefused(host.name, f"{host} wants more than a key ({', '.join(further)})")
        return
    raise LoginRefused(host.name, _advice(host, tried, hung_up=not transport.is_active()))


def _keys(host: Host) -> Iterator[paramiko.PKey]:
    if host.key is not None:
        yield from _named_key(host, Path(host.key).expanduser())
        return
    yield from _agent_keys()
    for path in usual_keys():
        try:
            yield paramiko.PKey.from_path(path)
        except (TypeError, ValueError, SSHException, OSError):
            continue  # one with a passphrase can only be used through the agent


def usual_keys() -> list[Path]:
    """Returns the user's keys in the places where OpenSSH looks."""
    return [path for name in _USUAL_KEYS if (path := Path.home() / ".ssh" / name).is_file()]


def _named_key(host: Host, path: Path) -> Iterator[paramiko.PKey]:
    try:
        if os.name == "posix" and path.stat().st_mode & _OTHERS:
            raise LoginRefused(host.name, f"others can read the key {host.key}: chmod 600 {host.key}")
        yield paramiko.PKey.from_path(path)
    except OSError as error:
        raise LoginRefused(host.name, f"the key {host.key} cannot be read: {error.strerror}") from error
    except (TypeError, PasswordRequiredException):  # from cryptography and from paramiko
        yield from _agent_keys()
        raise LoginRefused(
            host.name, f"the key {host.key} has a passphrase; the SSH agent can hold it: ssh-add {host.key}"
        ) from None
    except (ValueError, SSHException) as error:
        raise LoginRefused(host.name, f"{host.key} is not a private key that can be used") from error


def _agent_keys() -> Iterator[paramiko.PKey]:
    try:
        agent = paramiko.Agent()
    except (SSHException, OSError):
        return
    try:
        yield from agent.get_keys()
    finally:
        agent.close()


def _advice(host: Host, tried: int, hung_up: bool) -> str:
    if not tried:
        return "there is no key to log in with: name one (key: ~/.ssh/id_ed25519) or start an SSH agent"
    if hung_up:
        return f"{host} hung up after {tried} of your keys: name the right one (key: ~/.ssh/id_ed25519)"
    copy = f"ssh-copy-id{f' -i {host.key}' if host.key else ''} -p {host.port} {host.user}@{host.address}"
    return f"{host} does not accept {'this key' if host.key else 'any of your keys'}: {copy}"
