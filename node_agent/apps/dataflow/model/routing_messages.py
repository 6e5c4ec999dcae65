"""Control messages between the routers of neighbouring replicas in G_QDP.

``number`` grows with every message of a sender, so the receiver can tell which of two is newer. A restarted
sender begins anew; ``boot`` counts its starts, as the receiver knows them.
"""

from msgspec import Struct


class CostReport(Struct, frozen=True, tag="cost_report", array_like=True):
    """Downstream, to a replica of an operator with several inputs: what it costs ``sender`` to reach it.

    ``using``: the replica of that operator that the sender sends to now; so a replica that holds part of a
    window knows where the rest goes. None: no path, no choice.
    """

    sender: str
    boot: int
    number: int
    cost: float | None
    using: str | None


class CostUpdate(Struct, frozen=True, tag="cost_update", array_like=True):
    """Upstream: what the path from ``sender`` to the sinks costs, and how many tuples wait there.

    ``aggregate``, for an operator with several inputs: the cost of reaching it summed over its inputs; None:
    an input cannot reach it, or has not reported. ``using``: the replica that most of its upstream replicas
    use.
    """

    sender: str
    boot: int
    number: int
    to_sinks: float | None
    queue: int
    aggregate: float | None = None
    using: str | None = None


Message = CostReport | CostUpdate


class Notice(Struct, frozen=True, array_like=True):
    """A message on its way to replica ``to``."""

    to: str
    message: Message
