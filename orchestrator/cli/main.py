"""Entry point of `rove`: handles errors, and Ctrl-C even before the verbs are imported."""

import signal
import sys

from orchestrator.errors import EXIT_INTERRUPTED


def main() -> None:
    """Runs the command line in a process of its own."""
    try:
        run()
    finally:
        # Nothing is left to interrupt: another Ctrl-C could only break the exit of the interpreter.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def run() -> None:
    """Runs the command line. Raises SystemExit."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _run() -> None:
    # Imported here: it takes long enough for a Ctrl-C to come meanwhile.
    from orchestrator.cli.app import app
    from orchestrator.cli.output import errors
    from orchestrator.errors import RoveError

    try:
        app()
    except RoveError as error:
        errors.print(str(error), markup=False)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
