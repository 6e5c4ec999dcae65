"""Always the first replica, without network awareness."""

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.policy import SwitchingPolicy
from node_agent.apps.dataflow.switching.route import Choice, Hop


def static(situation: Situation, memory: Struct | None = None) -> Choice:
    """Chooses the first replica of the operator for ever."""
    for candidate in situation.candidates:
        return Choice(Hop(candidate.to, candidate.path))
    return Choice(None)


POLICY = SwitchingPolicy(
    static,
    "always the first replica, whatever it costs: no network awareness",
    several=False,
    adapts=False,
    reason=lambda situation, choice: "The policy is static: the first replica, whatever it costs.",
)
