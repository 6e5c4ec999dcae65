"""Commands for the system as values, each with the commands that undo it."""

from msgspec import Struct


class SetupError(Exception):
    """The message is one sentence for the user."""


class Command(Struct, frozen=True, omit_defaults=True):
    argv: tuple[str, ...]
    input: str = ""

    def __str__(self) -> str:
        return " ".join(self.argv)


class Step(Struct, frozen=True):
    """``lacking``: the message if the kernel lacks a feature for the step. An ``optional`` step may fail."""

    do: Command
    undo: tuple[Command, ...] = ()
    lacking: str = ""
    optional: bool = False


def command(*argv: str) -> Command:
    return Command(argv)
