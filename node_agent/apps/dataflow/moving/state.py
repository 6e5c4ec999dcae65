"""An operator that moves: made of its immutable state, which another node fetches.

A kind of operator that has such state says how it is read where the operator was deployed, and how an
operator is made of it elsewhere (``OperatorKind.state``, ``OperatorKind.restore``). Others are made of their
parameters.
"""

from dataclasses import dataclass
from typing import Any, cast

from node_agent.apps.dataflow.operators.registry import Context, Operator, OperatorKind

MOST_STATE = 512 * 1024**2


class TooLargeToMove(Exception):
    """The immutable state exceeds what a node takes."""


@dataclass(frozen=True)
class Recipe:
    """``params`` must be an instance of ``kind.params``."""

    kind: OperatorKind
    params: Any
    context: Context

    def state(self) -> bytes:
        """As it was deployed. Raises OperatorUnusable, TooLargeToMove."""
        data = b"" if self.kind.state is None else self.kind.state(self.params, self.context)
        if len(data) > MOST_STATE:
            raise TooLargeToMove(f"{len(data)} bytes of state are more than {MOST_STATE}")
        return data

    def operator(self, state: bytes) -> Operator:
        """Raises OperatorUnusable."""
        if self.kind.restore is None:
            return cast(Operator, self.kind.factory(self.params, self.context))
        return self.kind.restore(self.params, self.context, state)
