"""Runs without root: creates a user namespace in which the same code builds the same network.

``python -m orchestrator.backends.netns.rootless DIRECTORY ARGV…`` runs ARGV there, with DIRECTORY for the
names of namespaces. All of it ends with the last process inside.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.backends.netns import names, syscalls
from orchestrator.backends.netns.errors import NetworkError

_ADVICE = "run as root, or allow user namespaces (sysctl user.max_user_namespaces, AppArmor)"


def enter(directory: Path) -> None:
    """Moves this process, which must have a single thread, into a user namespace of its own."""
    user, group = os.getuid(), os.getgid()
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"0 {user} 1")
    (own / "gid_map").write_text(f"0 {group} 1")
    syscalls.mount("", Path("/"), flags=syscalls.MS_PRIVATE | syscalls.MS_REC)
    syscalls.mount("tmpfs", directory, kind="tmpfs")


def become_root(argv: Sequence[str]) -> None:
    """Restarts ``argv`` as root of a user namespace, and does not
    return; does nothing if we are root already.

    Names go where root has them; if that directory is missing, only a tmpfs on all of /run can provide it.
    """
    if os.geteuid() == 0:
        return
    place = names.HOST_NAMES if names.HOST_NAMES.is_dir() else names.HOST_NAMES.parent
    os.execv(sys.executable, [sys.executable, "-m", __spec__.name, str(place), *argv])


def join(pid: int) -> None:
    """Moves this process, which must have a single thread, into the user namespace of process ``pid``."""
    here, there = Path("/proc/self/ns/user"), Path(f"/proc/{pid}/ns/user")
    directory = Path.cwd()
    try:
        if here.readlink() == there.readlink():
            return
        descriptor = os.pidfd_open(pid)
        try:
            syscalls.setns(descriptor, syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
        finally:
            os.close(descriptor)
        os.chdir(directory)
    except OSError as error:
        raise NetworkError(f"cannot join process {pid}: {error.strerror}: it is another user's") from error


def main() -> None:
    directory, argv = Path(sys.argv[1]), sys.argv[2:]
    try:
        enter(directory)
    except OSError as error:
        sys.exit(f"cannot make a user namespace: {error.strerror}: {_ADVICE}")
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
