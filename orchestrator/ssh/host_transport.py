"""One authenticated SSH transport to a host, through jump hosts if needed. Blocking: use it in a thread."""

import logging
import socket
import threading
import time

import paramiko
from paramiko.ssh_exception import ChannelException, IncompatiblePeer, SSHException

from orchestrator.spec.inventory import Host
from orchestrator.ssh.authentication import log_in
from orchestrator.ssh.errors import HostKeyChanged, Unreachable
from orchestrator.ssh.host_keys import HostKey, KnownHosts, changed

KEEP_ALIVE_S = 5
GONE_S = 20
"""A host that acknowledges nothing for so long counts as gone."""
_LATER_S = 5.0
_RSA = ("rsa-sha2-512", "rsa-sha2-256")

# Every failure is reported as an exception; without a handler, paramiko would print it as well.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class HostTransport:
    """Opened at most once. ``close`` may be called at any time, from any thread, and ends current calls."""

    def __init__(self, host: Host, known: KnownHosts) -> None:
        self.host = host
        self._known = known
        self._behind = HostTransport(host.jump, known) if host.jump else None
        self._socket: socket.socket | paramiko.Channel | None = None
        self._transport: paramiko.Transport | None = None
        self._closed = False

    @property
    def alive(self) -> bool:
        return self._transport is not None and self._transport.is_active() and not self._closed

    @property
    def transport(self) -> paramiko.Transport:
        if self._transport is None or not self.alive:
            raise Unreachable(self.host.name, "the connection is lost")
        return self._transport

    def open(self, timeout: float) -> None:
        """Connects and logs in. A host with another key than the recorded one learns neither user nor key."""
        deadline = time.monotonic() + timeout
        expected = self._known.demand(self.host.name)
        try:
            transport = self._negotiated(deadline, expected)
            self._known.check(self.host.name, _key_of(transport))
            transport.auth_timeout = _remaining(deadline)
            log_in(transport, self.host)
            transport.set_keepalive(KEEP_ALIVE_S)
        except BaseException:
            self.close()
            raise

    def scan(self, timeout: float) -> HostKey:
        """Returns the key that the host presents, whatever is recorded. Jump
        hosts on the way are checked as always."""
        try:
            return _key_of(self._negotiated(time.monotonic() + timeout, None))
        finally:
            self.close()

    def close(self) -> None:
        self._closed = True
        if self._transport is not None:
            self._transport.close()
        if self._socket is not None:
            self._socket.close()
        if self._behind is not None:
            self._behind.close()

    def _negotiated(self, deadline: float, expected: HostKey | None) -> paramiko.Transport:
        name = self.host.name
        self._socket = self._dial(deadline)
        transport = self._transport = paramiko.Transport(self._socket)
        if self._closed:
            raise Unreachable(name, "given up")
        if expected is not None:
            kinds = _RSA if expected.type == "ssh-rsa" else (expected.type,)
            transport.get_security_options().key_types = kinds
        # Longer than we wait ourselves, so that silence can be distinguished from a wrong answer.
        transport.banner_timeout = transport.handshake_timeout = _remaining(deadline) + _LATER_S
        done = threading.Event()
        transport.start_client(event=done)
        if not done.wait(_remaining(deadline)):
            raise Unreachable(name, f"{self.host} accepts the connection, but does not answer")
        if not transport.is_active():
            failure = transport.get_exception()
            if expected is not None and isinstance(failure, IncompatiblePeer) and "host key" in str(failure):
                raise HostKeyChanged(name, changed(expected, "one of another type"))
            raise Unreachable(name, f"{self.host} does not speak SSH with us: {_described(failure)}")
        return transport

    def _dial(self, deadline: float) -> socket.socket | paramiko.Channel:
        host = self.host
        try:
            if self._behind is not None:
                self._behind.open(_remaining(deadline))
                return self._behind.transport.open_channel(
                    "direct-tcpip",
                    (host.address, host.port),
                    ("127.0.0.1", 0),
                    timeout=_remaining(deadline),
                )
            dialled = socket.create_connection((host.address, host.port), _remaining(deadline))
        except TimeoutError:
            raise Unreachable(host.name, f"no answer from {host.address} port {host.port}") from None
        except OSError as error:
            what = (error.strerror or str(error)).lower()
            raise Unreachable(host.name, f"{host.address} port {host.port}: {what}") from error
        except (ChannelException, SSHException, EOFError) as error:
            raise Unreachable(
                host.name, f"cannot be reached through {host.jump}: {_described(error)}"
            ) from error
        _tune(dialled)
        return dialled


def _tune(dialled: socket.socket) -> None:
    # Commands are small packets with an answer each; paramiko's keep-alives reveal a dead host.
    dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_S * 1000)


def _key_of(transport: paramiko.Transport) -> HostKey:
    key = transport.get_remote_server_key()
    return HostKey(key.get_name(), key.asbytes())


def _remaining(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)


def _described(failure: BaseException | None) -> str:
    return str(failure).splitlines()[0] if failure is not None and str(failure) else "it hung up"
