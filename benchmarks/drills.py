"""Fault drills over whole runs: killed, interrupted, out of disk, out of time, with lost disks of nodes.

Each drill does one thing to a real `rove` and then checks: was a recorded file lost, is anything left in the
kernel, on disk or on nodes, and are verdict and exit code true? Most run in namespaces of this machine, some
in virtual time, some on real OpenSSH servers. A drill that finds a problem is printed with the command that
repeats it.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.drilling.campaign import Played, campaign, orders, scaled
from benchmarks.drilling.drill import DEADLINE_S
from benchmarks.drilling.kinds import KINDS
from benchmarks.shared import harness
from tests.ssh.sshd import lacking

SEED = 1
AT_ONCE = 4
LABS = 2
FAULTS = ("lost", "leftovers", "wrong_verdicts")


def figures(played: list[Played], seconds: float) -> dict[str, float | int | str]:
    kinds = Counter(each.order.kind for each in played)
    return {
        "benchmark": "drills",
        "drills": len(played),
        **{fault: sum(len(getattr(each.found, fault)) for each in played) for fault in FAULTS},
        "seconds": seconds,
        **{f"{kind}_drills": kinds[kind] for kind in KINDS if kinds[kind]},
    }


def tell(played: Played) -> None:
    """Prints a drill as soon as it is over, if it found a problem."""
    if played.found.clean:
        return
    print(f"{played.order.name} ({'; '.join(played.notes)}): {played.order.again}", file=sys.stderr)
    for fault in FAULTS:
        for what in getattr(played.found, fault):
            print(f"  {fault}: {what}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="drills: faults that runs must survive with a true verdict")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", action="append", choices=KINDS, help="this kind; may be given again")
    parser.add_argument("--drills", type=int, help="in all, instead of what the table of kinds says")
    parser.add_argument("--first", type=int, default=0, help="the number of each kind's first drill")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="drills side by side")
    parser.add_argument("--labs", type=int, default=LABS, help="laboratories of three SSH servers each")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, help="of each drill, in seconds")
    parser.add_argument("--keep", type=Path, help="work here; what a drill with findings left stays here")
    parser.add_argument("--verbose", action="store_true", help="name every drill as it ends")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("drills needs root, for network namespaces", file=sys.stderr)
        return 1
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # or children would ignore it, too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    kinds = arguments.only or list(KINDS)
    if why := lacking():
        print(f"without real nodes: {why}", file=sys.stderr)
        kinds = [kind for kind in kinds if not KINDS[kind].real_nodes]

    def follow(played: Played) -> None:
        if arguments.verbose:
            print(
                f"{played.order.name} {played.seconds:.1f} s {'; '.join(played.notes)}",
                file=sys.stderr,
                flush=True,
            )
        tell(played)

    began = time.monotonic()
    with TemporaryDirectory(prefix="rove-drills-") as directory:
        root = (arguments.keep or Path(directory)).resolve()
        root.mkdir(parents=True, exist_ok=True)
        if any(root.iterdir()):
            print(f"{root} is not empty", file=sys.stderr)
            return 2
        ordered = orders(scaled(arguments.drills, kinds), arguments.seed, arguments.first)
        played = campaign(ordered, root, arguments.at_once, arguments.labs, arguments.deadline, follow)
    found = figures(played, time.monotonic() - began)
    harness.tell("Fault drills over whole runs", found, arguments.json)
    return 1 if any(found[fault] for fault in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
