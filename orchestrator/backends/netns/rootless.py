"""Root without root: a user namespace in which the same code builds the same network.

``python -m orchestrator.backends.netns.rootless DIRECTORY ARGV…`` runs ARGV there, with DIRECTORY as the
place for the names of namespaces. All of it ends with the last process inside.
"""

import os
import sys
from pathlib import Path

from orchestrator.backends.netns import syscalls


def enter(directory: Path) -> None:
    """Move this process, which must have one thread only, into a user namespace of its own."""
    user, group = os.getuid(), os.getgid()
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"0 {user} 1")
    (own / "gid_map").write_text(f"0 {group} 1")
    syscalls.mount("", Path("/"), flags=syscalls.MS_PRIVATE | syscalls.MS_REC)
    syscalls.mount("tmpfs", directory, kind="tmpfs")


def main() -> None:
    directory, argv = Path(sys.argv[1]), sys.argv[2:]
    try:
        enter(directory)
    except OSError as error:
        sys.exit(f"cannot make a user namespace: {error.strerror}")
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
