"""Checks whether this machine and user can run nodes as namespaces. Each check says what to do if not.

Everything is tried for real, in a throw-away namespace that is gone when the checks end.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from orchestrator.backends.netns import control_group, executor, netlink, rootless, syscalls
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.netlink import Netlink

_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Check:
    """``advice`` is empty if all is well. If a check is not ``required``, there is a lesser substitute."""

    name: str
    ok: bool
    advice: str = ""
    required: bool = True


def checks() -> list[Check]:
    """Runs the checks directly as root; otherwise in a user namespace, as a run would."""
    return _kernel_checks() if os.geteuid() == 0 else _rootless_checks()


def _rootless_checks() -> list[Check]:
    name = "root or user namespace"
    with tempfile.TemporaryDirectory(prefix="rove-checks-") as directory:
        command = [sys.executable, "-m", rootless.__name__, directory, sys.executable, "-m", __name__]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return [Check(name, False, f"{error}: run as root")]
    if done.returncode:
        return [Check(name, False, done.stderr.strip().rpartition("\n")[2])]
    return [Check(name, True), *(Check(**check) for check in json.loads(done.stdout))]


def _kernel_checks() -> list[Check]:
    return syscalls.in_own_thread(_try_everything)


def _try_everything() -> list[Check]:
    try:
        syscalls.unshare(syscalls.CLONE_NEWNET)
    except OSError as error:
        advice = "needs CAP_SYS_ADMIN: run as root, not in a restricted container"
        return [Check("network namespace", False, f"{error.strerror}: {advice}")]
    with Netlink() as kernel:
        return [
            Check("network namespace", True),
            _tried("enter a namespace", _enter_own, "needs CAP_SYS_ADMIN: run as root"),
            _tried(
                str(executor.TUN_DEVICE),
                lambda: os.close(os.open(executor.TUN_DEVICE, os.O_RDWR | os.O_CLOEXEC)),
                "the radio falls back to veth and raw sockets; for TAP: modprobe tun, and let this user read "
                "and write the device",
                required=False,
            ),
            _tried(
                "TAP device",
                lambda: os.close(executor.open_tap("check0")),
                "the radio falls back to veth and raw sockets; for TAP: modprobe tun",
                required=False,
            ),
            _tried("veth pair", lambda: _create_veth(kernel), "modprobe veth"),
            _tried(
                "bridge",
                lambda: kernel.create(netlink.RTM_NEWLINK, netlink.new_bridge("check1")),
                "modprobe bridge",
            ),
            _control_group_check(),
        ]


def _tried(name: str, attempt: Callable[[], None], advice: str, required: bool = True) -> Check:
    try:
        attempt()
    except OSError as error:
        return Check(name, False, f"{error.strerror}: {advice}", required)
    return Check(name, True, required=required)


def _enter_own() -> None:
    descriptor = os.open(syscalls.OWN_NETWORK, os.O_RDONLY | os.O_CLOEXEC)
    try:
        syscalls.setns(descriptor, syscalls.CLONE_NEWNET)
    finally:
        os.close(descriptor)


def _create_veth(kernel: Netlink) -> None:
    descriptor = os.open(syscalls.OWN_NETWORK, os.O_RDONLY | os.O_CLOEXEC)
    try:
        kernel.create(netlink.RTM_NEWLINK, netlink.new_veth("check2", "check3", descriptor))
    finally:
        os.close(descriptor)


def _control_group_check() -> Check:
    name = "control group"
    advice = (
        "processes are ended one by one instead; for a group: Linux 5.14 and a cgroup v2 that we may write"
    )
    with subprocess.Popen(["sleep", str(_TIMEOUT_S)]) as sleeper:
        group = control_group.create_around(Mark(f"checks-{os.getpid()}", Path("/")), sleeper.pid)
        sleeper.kill()
        sleeper.wait()
        if group is None:
            return Check(name, False, advice, required=False)
        removed = group.remove(timeout=1.0)
        return Check(name, removed, "" if removed else advice, required=False)


if __name__ == "__main__":
    print(json.dumps([asdict(check) for check in _kernel_checks()]))
