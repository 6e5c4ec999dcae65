"""What a broker reports of operators that move."""

from collections.abc import Callable, Mapping

from node_agent.apps.mcep.config import Settings
from node_agent.apps.mcep.moving.messages import Happened
from node_agent.apps.mcep.moving.operators import MovingOperators
from node_agent.apps.mcep.telemetry import (
    OperatorNoted,
    OperatorOrdered,
    OperatorPlaced,
    OperatorTraffic,
    home,
    hosting,
)
from node_agent.model.telemetry import Event


class MovesReport:
    """Of one broker. Where operators begin is told with the first sample."""

    def __init__(self, settings: Settings, node: str, record: Callable[[Event], None]) -> None:
        self._record = record
        self._moves = {each.name: each.migrate for each in settings.queries if each.migrate is not None}
        self._begin = [
            OperatorPlaced(home(each.name), each.name, operator, 0, "", host, "deployed")
            for each in settings.queries
            if each.migrate is not None and each.home == node
            for operator, host in each.hosts.items()
        ]
        self._said: dict[str, tuple[int, ...]] = {}

    def happened(self, told: Happened) -> None:
        query, operator, number = told.query, told.operator, told.migration
        given = self._moves[query]
        if told.what == "ordered":
            size = given.state.get(operator, 0)
            where = told.source, told.target, str(given.method), size, told.detail
            self._record(OperatorOrdered(home(query), query, operator, number, *where))
        elif told.what == "ended":
            ends = told.source, told.target, told.detail
            self._record(OperatorPlaced(home(query), query, operator, number, *ends))
        else:
            self._record(OperatorNoted(hosting(query), query, operator, number, told.what, str(told.detail)))

    def sample(self, moving: Mapping[str, MovingOperators]) -> None:
        for each in self._begin:
            self._record(each)
        self._begin = []
        for query, operators in moving.items():
            copied = operators.copied
            bdp = round(copied.streams), round(copied.copies)
            numbers = (copied.state, copied.input, *bdp, operators.planning, operators.plans)
            if self._said.get(query) != numbers:
                self._said[query] = numbers
                self._record(OperatorTraffic(hosting(query), query, *numbers))
