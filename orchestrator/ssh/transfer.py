"""Transfers files to and from a host: checked by SHA-256, renamed into place, resumed if interrupted.

A partial file has the digest of the whole in its name, so that it is never continued with other content.
Blocking: use it in a thread.
"""

import errno
import hashlib
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

import paramiko
from paramiko.ssh_exception import SSHException

from orchestrator.runs.files import sync_directory
from orchestrator.ssh.command import CHUNK, Command, Completed, Session, is_gone
from orchestrator.ssh.errors import DiskFull, TransferBroken, Unreachable

STALL_S = 20.0
"""A transfer without a byte for so long is aborted."""
_OPEN_S = 15.0
_BLOCK = 32 * 1024
_OWNER_ONLY = 0o600
_FROM = (
    '[ -f "$2" ] || { ls -d -- "$2" >/dev/null && echo "not a file" >&2; exit 1; }; '
    'tail -c "+$1" -- "$2" | head -c "$3"'
)
_DIGEST_OF_BEGINNING = '[ -r "$2" ] && head -c "$1" < "$2" | sha256sum'


class Transfer:
    """Transfers one file. ``abort`` ends it; relative paths start in the user's home directory."""

    def __init__(self, host: str, transport: paramiko.Transport) -> None:
        self._host = host
        self._transport = transport
        self._channel: paramiko.Channel | None = None
        self._checking: Session | None = None

    def abort(self) -> None:
        if self._checking is not None:
            self._checking.abort()
        if self._channel is not None:
            self._channel.close()

    def upload(self, local: Path, remote: str, mode: int) -> str:
        """Returns the digest of the file that is now at ``remote``."""
        size, whole = local.stat().st_size, _digest(local)
        part = f"{remote}.{whole[:16]}.part"
        with self._as_transfer_errors(remote), self._sftp() as sftp:
            if _remote_size(sftp, remote) != size or self._remote_digest(remote, size) != whole:
                self._send(sftp, local, part, size)
                arrived = self._remote_digest(part, size)
                if not arrived:
                    raise TransferBroken(self._host, f"{remote}: it cannot be checked there")
                if arrived != whole:
                    sftp.remove(part)
                    raise TransferBroken(self._host, f"{remote}: arrived damaged")
                sftp.chmod(part, mode)
                sftp.posix_rename(part, remote)
            else:
                sftp.chmod(remote, mode)
        return whole

    def download(self, remote: str, local: Path, size: int, whole: str) -> None:
        """Fetches ``size`` bytes, and no more, whose digest is ``whole``; only the user can read ``local``.

        What the host says later about size or digest is ignored.
        """
        if local.is_file() and local.stat().st_size == size and _digest(local) == whole:
            return
        with self._as_transfer_errors(remote):
            part = local.with_name(f".{local.name}.{whole[:16]}.part")
            self._fetch(remote, part, size)
            if _digest(part) != whole:
                part.unlink()
                raise TransferBroken(self._host, f"{remote}: arrived damaged, or was written to meanwhile")
            part.replace(local)
            sync_directory(local.parent)

    def _send(self, sftp: paramiko.SFTPClient, local: Path, part: str, size: int) -> None:
        there = _remote_size(sftp, part) or 0
        resumed = 0 < there <= size and self._remote_digest(part, there) == _digest(local, there)
        start = there if resumed else 0
        try:
            with local.open("rb") as source, sftp.open(part, "r+b" if resumed else "wb") as file:
                file.chmod(_OWNER_ONLY)  # nobody else may read it meanwhile
                source.seek(start)
                file.seek(start)
                file.set_pipelined(True)
                while block := source.read(_BLOCK):
                    file.write(block)
        except OSError as error:
            if not isinstance(error, TimeoutError) and not sftp.sock.closed:
                self._blame_disk(sftp, part, size)
            raise
        if _remote_size(sftp, part) != size:  # answers to the last writes are not read
            self._blame_disk(sftp, part, size)

    def _fetch(self, remote: str, part: Path, size: int) -> None:
        """Reads a stream: SFTP would wait for every block, or request all of them in a thread of its own."""
        here = part.stat().st_size if part.exists() else 0
        resumed = 0 < here <= size and self._remote_digest(remote, here) == _digest(part)
        start = here if resumed else 0
        argv = ["sh", "-c", _FROM, "sh", str(start + 1), remote, str(size - start)]
        session = Session(self._host, self._transport, shlex.join(argv))
        try:
            with session.begin() as channel, _private(part, "ab" if resumed else "wb") as file:
                self._channel = channel
                channel.settimeout(STALL_S)
                left = size - start
                while left and (block := channel.recv(min(CHUNK, left))):
                    file.write(block)
                    left -= len(block)
                complaint = b"" if not left else channel.recv_stderr(CHUNK)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                part.unlink(missing_ok=True)
                raise DiskFull(self._host, no_room_here(part.parent, size)) from error
            raise
        if left:
            if message := complaint.decode(errors="replace").strip().rpartition(": ")[2]:
                raise TransferBroken(self._host, f"{remote}: {message.lower()}")
            raise EOFError

    def _remote_digest(self, path: str, size: int) -> str:
        """Returns the digest of the first ``size`` bytes; empty if they cannot be read."""
        done = self._executed("sh", "-c", _DIGEST_OF_BEGINNING, "sh", str(size), path)
        return done.stdout[:64].decode(errors="replace")

    def _blame_disk(self, sftp: paramiko.SFTPClient, part: str, size: int) -> None:
        """Raises DiskFull if the disk is full, which SFTP cannot express, and removes the partial file."""
        done = self._executed("stat", "-f", "-c", "%a %S", str(PurePosixPath(part).parent))
        numbers = done.stdout.split()
        if done.status == 0 and len(numbers) == 2 and all(word[:18].isdigit() for word in numbers):
            missing = size - (_remote_size(sftp, part) or 0)
            free = int(numbers[0][:18]) * int(numbers[1][:18])
            if free < missing:
                sftp.remove(part)
                name = part.rsplit(".", 2)[0]
                text = f"no room for {name}: {missing} more bytes are needed, {free} are free"
                raise DiskFull(self._host, text)

    def _executed(self, *argv: str) -> Completed:
        self._checking = Session(self._host, self._transport, shlex.join(argv))
        return Command(self._checking).execute()

    @contextmanager
    def _sftp(self) -> Iterator[paramiko.SFTPClient]:
        channel = self._channel = self._transport.open_session(timeout=_OPEN_S)
        channel.settimeout(STALL_S)
        with channel:
            channel.invoke_subsystem("sftp")
            try:
                yield paramiko.SFTPClient(channel)
            except OSError as error:
                if channel.closed:
                    raise EOFError from error
                raise

    @contextmanager
    def _as_transfer_errors(self, remote: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise TransferBroken(self._host, f"{remote}: no progress for {STALL_S:g} s") from error
        except Unreachable as error:
            raise TransferBroken(self._host, f"{remote}: {error.reason}") from error
        except (EOFError, SSHException, paramiko.SFTPError) as error:
            is_gone(self._transport)  # so that the next connect sees it
            raise TransferBroken(self._host, f"{remote}: the connection was lost") from error
        except OSError as error:
            what = (error.strerror or str(error)).lower()
            text = f"{what}: {error.filename}" if error.filename else what
            raise TransferBroken(self._host, f"{remote}: {text}") from error


def no_room_here(directory: Path, size: int) -> str:
    return f"no room on this machine in {directory.absolute()} for {size} bytes: make room there, then repeat"


def _private(path: Path, mode: Literal["ab", "wb"]) -> BinaryIO:
    """Opens for writing, readable by the user alone."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, _OWNER_ONLY))


def _remote_size(sftp: paramiko.SFTPClient, path: str) -> int | None:
    try:
        return sftp.stat(path).st_size
    except FileNotFoundError:
        return None


def _digest(path: Path, size: int | None = None) -> str:
    """Returns the digest of the first ``size`` bytes, or of all."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        left = path.stat().st_size if size is None else size
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()
