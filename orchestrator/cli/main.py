"""Entry point of `rove`: handles errors, and Ctrl-C even before the verbs are imported."""

import sys

from orchestrator.errors import EXIT_INTERRUPTED


def main() -> None:
    try:
        _main()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _main() -> None:
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
