"""What `rove plan` says about a dataflow: which replica lives where, and why there are so many."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.apps.dataflow.planning.placement import Derived


def shown_replicas(deployment: DeploymentPlan, derived: Sequence[Derived]) -> list[RenderableType]:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("operator", "kind", "after", "replicas → nodes"):
        table.add_column(heading)
    for operator in deployment.query.operators:
        hosts = "  ".join(f"{replica.index} → {replica.node}" for replica in deployment.of(operator.name))
        table.add_row(operator.name, operator.kind, ", ".join(operator.after), hosts)
    # Operators on ways of one length share their reasons.
    alike: dict[tuple[int, str], list[str]] = {}
    for each in derived:
        alike.setdefault((each.replicas, _reason(each)), []).append(each.operator)
    reasons = [
        Text.from_markup(f"[bold]k = {replicas}[/] for {', '.join(operators)}: {reason}")
        for (replicas, reason), operators in alike.items()
    ]
    return [table, *reasons]


def shown_migrations(deployment: DeploymentPlan) -> list[RenderableType]:
    if not deployment.moving:
        return []
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("operator", "moves at", "from", "to", "method"):
        table.add_column(heading)
    for each in migrations_document(deployment):
        table.add_row(each["operator"], f"{each['at_s']:g} s", each["from"], each["to"], each["method"])
    return [table]


def migrations_document(deployment: DeploymentPlan) -> list[dict[str, Any]]:
    """Where operators are to move, each from where it is if all before went well."""
    found = []
    for moving in deployment.moving:
        where = moving.hosts[0]
        for each in moving.migrations:
            own = {"operator": moving.operator, "at_s": each.at, "from": where, "to": each.target}
            found.append({**own, "method": each.method, "coordinator": moving.coordinator})
            where = each.target
    return found


def _reason(derived: Derived) -> str:
    advice, prospect = derived.advice, derived.prospect
    if advice.hops is None:
        return "no way from source to sink is to be expected, however many replicas there are"
    life = f"live {prospect.link_life_s:.0f} s" if prospect.speed else "stay"
    alone = f" (k = 1: {advice.hops_of_one:.1f})" if advice.hops_of_one is not None else ""
    parts = [
        f"{advice.degree:.1f} neighbours and links that {life} are to be expected, and "
        f"{advice.hops:.1f} hops from source to sink{alone}"
    ]
    parts += [
        f"{'the last replica gains' if k <= advice.replicas else 'one more would gain'} {gain:.0%}"
        for k, gain in enumerate(advice.gains, 2)
        if k >= advice.replicas and isfinite(gain)
    ]
    if derived.replicas < advice.replicas:
        parts.append(f"there is no room for the {advice.replicas} that would be worth it")
    return "; ".join(parts)


def replicas_document(deployment: DeploymentPlan) -> list[dict[str, Any]]:
    return [
        {"replica": replica.id, "operator": replica.operator, "node": replica.node}
        for replica in deployment.replicas
    ]


def derived_document(derived: Sequence[Derived]) -> list[dict[str, Any]]:
    """Numbers of replicas that the planner chose, and from what; hops and gains are expectations."""
    return [
        {
            "operator": found.operator,
            "replicas": found.replicas,
            "advised": found.advice.replicas,
            "range_m": round(found.prospect.range_m, 1),
            "speed": found.prospect.speed,
            "neighbours": round(found.advice.degree, 2),
            "hops": _rounded(found.advice.hops),
            "hops_of_one": _rounded(found.advice.hops_of_one),
            "link_life_s": round(found.prospect.link_life_s, 1) if found.prospect.speed else None,
            "settle_s": found.prospect.settle_s,
            "gains": [_rounded(gain) for gain in found.advice.gains],
        }
        for found in derived
    ]


def _rounded(number: float | None) -> float | None:
    return round(number, 3) if number is not None and isfinite(number) else None
