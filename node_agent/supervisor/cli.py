"""The supervisor's commands, also for users who log in on a node; all but ``attach`` print one line of JSON.

Each command imports only what it needs: on a small machine imports take most of the time.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

EXIT_FAILED = 1
EXIT_OCCUPIED = 3


def main() -> int:
    """Runs a command. Exit status: 0 done, 1 failed, 2 wrong usage, 3 a supervisor runs here already, 4 none
    is here to attach to.
    """
    arguments = _parser().parse_args()
    directory: Path = arguments.directory.absolute()
    match arguments.command:
        case "start":
            return _start(directory)
        case "run":
            from node_agent.supervisor.process import run

            return run(directory)
        case "attach":
            from node_agent.supervisor.bridge import attach

            return attach(str(directory))
        case "end":
            return _end(directory, arguments.reason)
        case _:
            return _status(directory)


def _start(place: Path) -> int:
    from node_agent.supervisor.launch import launch
    from node_agent.supervisor.order import BadOrder
    from node_agent.supervisor.place import Occupied

    try:
        _print(launch(place))
    except Occupied as error:
        _print({"error": str(error)})
        return EXIT_OCCUPIED
    except (BadOrder, OSError) as error:
        _print({"error": str(error)})
        return EXIT_FAILED
    return 0


def _end(place: Path, reason: str) -> int:
    from node_agent.supervisor.ending import end_place

    try:
        result = end_place(place, reason)
    except OSError as error:
        _print({"error": str(error)})
        return EXIT_FAILED
    _print(msgspec.to_builtins(result))
    return EXIT_FAILED if result.left or result.trouble else 0


def _status(directory: Path) -> int:
    from node_agent.supervisor.status import places_in, status_of

    _print({"places": [msgspec.to_builtins(status_of(place)) for place in places_in(directory)]})
    return 0


def _print(said: Mapping[str, Any]) -> None:
    print(msgspec.json.encode(said).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m node_agent.supervisor",
        description="Runs an experiment's set-up, services and agent on this node.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, what, directory in (
        ("start", "start a supervisor that goes on when you log out", "PLACE"),
        ("run", "the same, but stay in the foreground", "PLACE"),
        ("attach", "connect standard input and output to the supervisor", "PLACE"),
        ("end", "end the run, even if its supervisor is gone", "PLACE"),
        ("status", "show every run on this node", "ROVE_DIRECTORY"),
    ):
        command = commands.add_parser(name, help=what)
        command.add_argument("directory", metavar=directory, type=Path)
        if name == "end":
            command.add_argument("--reason", default="asked by hand", metavar="WHY")
    return parser
