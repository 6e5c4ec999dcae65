"""What will be told to the system, as values: commands, and with each of them the way back."""

from msgspec import Struct


class SetupError(Exception):
    """One sentence for the person who started it."""


class Command(Struct, frozen=True, omit_defaults=True):
    argv: tuple[str, ...]
    input: str = ""

    def __str__(self) -> str:
        return " ".join(self.argv)


class Step(Struct, frozen=True):
    """``lacking`` explains a failure where the kernel lacks a part. An ``optional`` step may fail."""

    do: Command
    undo: tuple[Command, ...] = ()
    lacking: str = ""
    optional: bool = False


def command(*argv: str) -> Command:
    return Command(argv)
