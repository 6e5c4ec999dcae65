"""Whose session is it? The mark that a run's session carries, and where it is noted on CORE's host.

Run ids are unique in one runs directory only: two users of a host may have the same. So a token goes with it,
random and journalled before the session is made.
"""

import secrets

from msgspec import Struct

FOLDER = ".rove/core"


class Mark(Struct, frozen=True):
    """``token`` is empty for a run of a version of Rove that had none."""

    run: str
    token: str = ""

    @property
    def text(self) -> str:
        """What the session's metadata hold."""
        return f"{self.run} {self.token}".rstrip()

    @property
    def ledger(self) -> str:
        """The file on CORE's host, below the user's home."""
        return f"{FOLDER}/sessions/{self.token}.json"


def new_mark(run: str) -> Mark:
    return Mark(run, secrets.token_hex(8))
