"""The mark of a run's session, and the file that records it on CORE's host.

Run ids are unique in one runs directory only: two users of a host may have the same. So a random token is
added, and journalled before the session is created.
"""

import secrets

from msgspec import Struct

FOLDER = ".rove/core"


class Mark(Struct, frozen=True):
    """``token`` is empty for runs of older versions of Rove."""

    run: str
    token: str = ""

    @property
    def text(self) -> str:
        """The value in the session's metadata."""
        return f"{self.run} {self.token}".rstrip()

    @property
    def ledger(self) -> str:
        """The file on CORE's host, below the user's home."""
        return f"{FOLDER}/sessions/{self.token}.json"


def new_mark(run: str) -> Mark:
    return Mark(run, secrets.token_hex(8))
