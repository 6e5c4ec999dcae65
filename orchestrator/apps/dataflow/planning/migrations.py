"""Plans where operators of a dataflow may move, and says why one cannot."""

from collections.abc import Iterator

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Migration, Moving
from node_agent.apps.dataflow.model.query import Query
from node_agent.apps.dataflow.model.units import Each
from node_agent.apps.dataflow.switching.exchange import Mode, is_needed
from orchestrator.apps.dataflow.setting import Setting
from orchestrator.apps.dataflow.spec.migrations import MigrationEntry
from orchestrator.spec.problems import Finding, Place, did_you_mean, listed, shown


def moving_in(plan: DeploymentPlan, entries: tuple[MigrationEntry, ...]) -> tuple[Moving, ...]:
    """Of a plan in which nothing is wrong. The coordinator is at a sink: nodes of sinks do not crash."""
    found = []
    for operator in dict.fromkeys(entry.operator for entry in entries):
        own = sorted((entry for entry in entries if entry.operator == operator), key=lambda each: each.at)
        (replica,) = plan.of(operator)
        below = plan.query.reachable_from([operator])
        sink = next(name for name in plan.query.sinks() if name in below)
        hosts = tuple(dict.fromkeys([replica.node, *(entry.to for entry in own)]))
        orders = tuple(Migration(each.at, each.to, each.method, each.give_up) for each in own)
        found.append(Moving(operator, hosts, plan.of(sink)[0].node, orders))
    return tuple(found)


def migration_findings(setting: Setting, plan: DeploymentPlan | None) -> list[Finding]:
    """``plan``: None if replicas have no places yet."""
    return list(_findings(setting, plan))


def _findings(setting: Setting, plan: DeploymentPlan | None) -> Iterator[Finding]:
    section, query = setting.section, setting.query
    if not section.migrations:
        return
    at = setting.at("migrations")
    if query.reliability != "best_effort":
        text = f"migrations go with reliability best_effort, and this query promises {query.reliability}"
        yield Finding(at, text, "use best_effort: streams to and from such an operator lose nothing anyway")
        return
    if is_needed(query, section.switching.policy, Mode(section.switching.mode)):
        text = "replicas must exchange costs or queues here, which an operator that moves does not"
        yield Finding(at, text, "use switching mode link_state and a policy that looks at costs only")
        return
    wrong: set[str] = set()
    for index, entry in enumerate(section.migrations):
        place = setting.at("migrations", index)
        for finding in _of_entry(setting, entry, place, wrong):
            wrong.add(entry.operator)
            yield finding
    if plan is not None:
        for operator in dict.fromkeys(entry.operator for entry in section.migrations):
            if operator not in wrong:
                yield from _of_places(setting, plan, operator)


def _of_entry(setting: Setting, entry: MigrationEntry, place: Place, wrong: set[str]) -> Iterator[Finding]:
    query, nodes = setting.query, setting.topology.node_names
    if entry.operator not in query.names():
        hint = did_you_mean(entry.operator, query.inner()) or f"the query has {listed(query.inner())}"
        yield Finding((*place, "operator"), f"the query has no operator {shown(entry.operator)}", hint)
    elif (why := _immovable(query, entry.operator)) is not None:
        if entry.operator not in wrong:
            yield Finding((*place, "operator"), why)
    elif (beside := _moving_neighbour(setting, entry.operator)) is not None and entry.operator not in wrong:
        text = f"{entry.operator} and {beside} are neighbours: only one of both can move in a run"
        yield Finding((*place, "operator"), text)
    if entry.to not in nodes:
        hint = did_you_mean(entry.to, nodes)
        yield Finding((*place, "to"), f"there is no node {shown(entry.to)}", hint)
    duration = setting.scenario.duration
    if entry.at >= duration:
        text = f"the measurement ends after {duration:g} s"
        yield Finding((*place, "at"), text, "use an earlier time, or a longer duration")


def _immovable(query: Query, name: str) -> str | None:
    spec = query.operator(name)
    if name not in query.inner():
        return f"{name} is a source or sink: these stay where they are"
    if not isinstance(spec.takes, Each):
        return f"{name} has a window or a join: only operators that take tuples one by one move"
    if len(spec.after) != 1:
        return f"{name} has {len(spec.after)} inputs: only operators with one move"
    return None


def _moving_neighbour(setting: Setting, name: str) -> str | None:
    """Returns a neighbour that an entry before those of ``name`` moves."""
    query = setting.query
    beside = {*query.upstream(name), *query.downstream(name)}
    before = [entry.operator for entry in setting.section.migrations]
    before = before[: before.index(name)]
    movable = (other for other in before if other in beside and _immovable(query, other) is None)
    return next(movable, None)


def _of_places(setting: Setting, plan: DeploymentPlan, operator: str) -> Iterator[Finding]:
    query = setting.query
    at = setting.at("migrations")
    for name in (operator, *query.upstream(operator), *query.downstream(operator)):
        if (count := len(plan.of(name))) != 1:
            whose = "it" if name == operator else f"its neighbour {name}"
            text = f"{operator} moves, so {whose} has one replica, not {count}"
            yield Finding(at, text, f"write replicas: {{{name}: 1}}")
            return
    entries = [(i, e) for i, e in enumerate(setting.section.migrations) if e.operator == operator]
    where, before = plan.of(operator)[0].node, -1.0
    for index, entry in sorted(entries, key=lambda each: each[1].at):
        place = setting.at("migrations", index)
        if entry.at == before:
            yield Finding((*place, "at"), f"{operator} already moves at this time")
        elif entry.to == where:
            yield Finding((*place, "to"), f"{operator} already is on {where} then")
        where, before = entry.to, entry.at
