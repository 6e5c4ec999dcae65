"""Reads a run's manifest: what its applications are, which replica is where, which stream passes it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Query:
    """A dataflow. ``after``: by operator, its inputs. ``makes``: streams by the operator they begin at."""

    after: dict[str, list[str]]
    takes: dict[str, str]
    replicas: dict[str, str]
    """The node of each replica."""
    behind: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in reversed(self.in_order()):
            self.behind[name] = {name}.union(*(self.behind[other] for other in self.downstream(name)))

    def in_order(self) -> list[str]:
        done: list[str] = []
        while len(done) < len(self.after):
            done += [
                name
                for name, inputs in self.after.items()
                if name not in done and all(each in done for each in inputs)
            ]
        return done

    def downstream(self, name: str) -> list[str]:
        return [other for other, inputs in self.after.items() if name in inputs]

    @property
    def sources(self) -> list[str]:
        return [name for name, inputs in self.after.items() if not inputs]

    @property
    def sinks(self) -> list[str]:
        return [name for name in self.after if not self.downstream(name)]

    def made_at(self, name: str) -> str | None:
        """Returns the stream that begins there: at a source, a window or a join."""
        if not self.after[name]:
            return f"{name}/0"
        return None if self.takes[name] == "each" else name

    def sent(self, name: str) -> set[str]:
        """Returns the streams that the operator sends."""
        made = self.made_at(name)
        return {made} if made else set().union(*(self.sent(each) for each in self.after[name]))

    def passing(self, name: str) -> set[str]:
        """Returns the streams that the operator takes or sends."""
        return self.sent(name).union(*(self.sent(each) for each in self.after[name]))

    def of(self, name: str) -> list[str]:
        return [replica for replica in self.replicas if operator_of(replica) == name]

    def leads_to(self, toward: str) -> list[str]:
        """Returns the sinks behind a replica or an operator."""
        return [sink for sink in self.sinks if sink in self.behind[operator_of(toward)]]

    def nodes(self, operators: list[str]) -> list[str]:
        return sorted({node for replica, node in self.replicas.items() if operator_of(replica) in operators})

    def makers(self, origin: str) -> set[str]:
        """Returns the nodes that emit the stream."""
        return {
            node for replica, node in self.replicas.items() if self.made_at(operator_of(replica)) == origin
        }

    def fed_by(self, origin: str) -> list[str]:
        """Returns the nodes of the sources whose tuples a stream is made of."""
        name = origin.partition("/")[0]
        return self.nodes([source for source in self.sources if name in self.behind[source]])


def operator_of(name: str) -> str:
    return name.partition("/")[0]


@dataclass
class FlowEnds:
    source: str
    sink: str


App = Query | dict[str, FlowEnds]


def read_apps(manifest: dict[str, Any]) -> dict[str, App]:
    found: dict[str, App] = {}
    for name, app in manifest["apps"].items():
        if app["kind"] == "flows":
            found[name] = {flow["name"]: FlowEnds(flow["source"], flow["sink"]) for flow in app["flows"]}
            continue
        operators = app["plan"]["query"]["operators"]
        found[name] = Query(
            {each["name"]: each["after"] for each in operators},
            {each["name"]: each["takes"]["type"] for each in operators},
            {f"{each['operator']}/{each['index']}": each["node"] for each in app["plan"]["replicas"]},
        )
    return found
