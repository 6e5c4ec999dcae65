"""What brokers may say about shared selections: each about its own operators, a manager about its own."""

from collections.abc import Iterable

from node_agent.apps.mcep.bounded import are_bounded, is_near, is_near_region
from node_agent.apps.mcep.deployment import Deployment
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.model import FAR_S, Event
from node_agent.apps.mcep.reuse.deployed import split_key
from node_agent.apps.mcep.reuse.offers import Covered, Offered


class ReuseClaims:
    """What ``receiver`` believes."""

    def __init__(self, receiver: str, deployment: Deployment) -> None:
        self._receiver = receiver
        reuse = deployment.reuse
        queries = {each.name: each for each in deployment.queries}
        self._managers = {} if reuse is None else {each.name: each for each in reuse.managers}
        self._manager_of = {} if reuse is None else reuse.manager_of
        self._hosts = {
            key: queries[query].hosts[name] for key in self._manager_of for query, name in [split_key(key)]
        }

    @property
    def may_be_shared(self) -> bool:
        """Whether events may say that they come from shared selections."""
        return bool(self._managers)

    def refusal(self, sender: str, said: Offered | Covered) -> str | None:
        """Returns one word that says why it cannot be; None if it can."""
        return self._offer(sender, said) if isinstance(said, Offered) else self._covered(sender, said)

    def _offer(self, sender: str, said: Offered) -> str | None:
        manager = self._manager_of.get(said.operator)
        if manager is None or manager.broker != self._receiver:
            return "operator"
        if sender != self._hosts[said.operator]:
            return "sender"
        if said.region is not None and not is_near_region(said.region):
            return "region"
        times = [said.since, *(each.end for each in said.selections)]
        if said.epoch < 1 or any(abs(t) > FAR_S for t in times) or FAR_S < said.upto < float("inf"):
            return "time"
        return _events(said.fresh)

    def _covered(self, sender: str, said: Covered) -> str | None:
        manager = self._managers.get(said.manager)
        if manager is None or sender != manager.broker:
            return "sender"
        results = said.results
        named = {each.operator for each in results.shares} | {key for key, _ in results.empty}
        if any(self._manager_of.get(key) is not manager for key in named):
            return "operator"
        if any(self._hosts[key] != self._receiver for key in named):
            return "operator"
        if any(each.source not in manager.operators for each in results.outputs):
            return "event"
        return _events(results.outputs)


def _events(events: Iterable[Event]) -> str | None:
    for event in events:
        if not are_bounded(event.attributes):
            return "attributes"
        if not -FAR_S <= event.t <= FAR_S:
            return "time"
        corners = [event.place] if isinstance(event.place, Point) else _corners(event)
        if not all(map(is_near, corners)):
            return "place"
    return None


def _corners(event: Event) -> list[Point]:
    box = event.place
    assert not isinstance(box, Point)
    return [Point(box.x0, box.y0), Point(box.x1, box.y1)]
