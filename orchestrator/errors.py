"""Failures that a person should read: one clear message each, and the exit code that goes with it."""

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INVALID = 3
EXIT_INTERRUPTED = 130


class RoveError(Exception):
    """Something failed; the message says what, and what to do about it."""

    exit_code = EXIT_FAILED


class BadInput(RoveError):
    """The user's file, argument or reference cannot be used. Nothing was created."""

    exit_code = EXIT_BAD_INPUT
