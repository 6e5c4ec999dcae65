"""What an experiment file says of reuse: queries that ask for almost the same share results.

reuse: {algorithm: mnh, quality: {precision: 60%, recall: 60%}, similarity: exact, period: 1s}
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from node_agent.apps.mcep.config import QueryConfig, query_of
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.reuse.checks import sharing_problem
from node_agent.apps.mcep.reuse.deployed import key_of, query_problem, split_key
from node_agent.apps.mcep.reuse.groups import Groups
from node_agent.apps.mcep.reuse.judging import Times
from node_agent.apps.mcep.reusing.config import (
    MOST_BATCH,
    Algorithm,
    ManagerConfig,
    ReuseConfig,
    Similarity,
)
from orchestrator.spec.base import Section
from orchestrator.spec.problems import Finding, Place, Unusable, listed, shown, unusable
from orchestrator.spec.units import DURATION, SHARE, PositiveDuration, PositiveLength

Whole = Annotated[int, Field(strict=True, ge=1, le=100_000)]


class LeastSection(Section):
    """What a result of another selection must reach, counted in atomic events; 100%: only results of equal
    selections."""

    precision: Annotated[float, SHARE] = Field(default=0.5, examples=["60%"])
    recall: Annotated[float, SHARE] = Field(default=0.5, examples=["60%"])

    @property
    def pair(self) -> tuple[float, float]:
        return self.precision, self.recall


class OwnReuseSection(Section):
    """What one query says: whether it shares, and what results of others must reach for it."""

    share: bool = Field(default=True, strict=True, description="Whether its selections are shared")
    precision: Annotated[float, SHARE] | None = Field(
        default=None, description="If not given, that of all queries", examples=["80%"]
    )
    recall: Annotated[float, SHARE] | None = Field(default=None, examples=["80%"])

    @property
    def asks(self) -> bool:
        """Whether it has a quality of its own."""
        return self.precision is not None or self.recall is not None

    def pair(self, common: LeastSection) -> tuple[float, float]:
        precision = common.precision if self.precision is None else self.precision
        return precision, common.recall if self.recall is None else self.recall


def _read_own(value: Any) -> Any:
    if isinstance(value, bool):
        return {"share": value}
    if isinstance(value, str | int | float):
        text = f"{shown(value)} says neither whether it shares nor what others must reach"
        raise unusable(text, "reuse: false, or for example reuse: {precision: 80%, recall: 80%}")
    return value


OwnReuse = Annotated[
    OwnReuseSection, BeforeValidator(_read_own, json_schema_input_type=bool | OwnReuseSection)
]


class BatchSection(Section):
    """Selections of an operator that are decided together."""

    count: Annotated[int, Field(strict=True, ge=1, le=MOST_BATCH)] | None = Field(
        default=None, description="So many, one after the other"
    )
    time: PositiveDuration | None = Field(default=None, description="Those that end in the same span of time")

    @model_validator(mode="after")
    def _one(self) -> "BatchSection":
        if (self.count is None) == (self.time is None):
            given = "neither count nor time is" if self.count is None else "count and time are"
            raise unusable(f"{given} given: a batch is by one of them", "batch: {time: 10s}")
        return self


class NeighboursSection(Section):
    """Which operators may process for another one; without limits all of the same type."""

    k: Whole | None = Field(default=None, description="At most so many")
    distn: PositiveLength | None = Field(
        default=None, description="Their focal objects are within this of the own one", examples=["5 km"]
    )
    disto: PositiveLength | None = Field(
        default=None, description="And within this of the reference's", examples=["2 km"]
    )
    again: Annotated[float, DURATION.within(ge=0.01)] = Field(
        default=2.0, description="They are chosen so often"
    )


class CellSection(Section):
    """Of the grid by which selections are compared with `similarity: grid`."""

    size: PositiveLength = Field(default=100.0, examples=["100 m"])
    time: PositiveDuration = Field(default=1.0, examples=["1s"])


class ReuseSection(Section):
    """One selection is processed for all that are similar to it."""

    algorithm: Algorithm = Field(
        default="mnh",
        description="Maximum neighbour, maximum similarity, or each selection for itself (to compare with)",
    )
    quality: LeastSection = LeastSection()
    similarity: Similarity = Field(
        default="exact",
        description="By ids of atomic events, areas of interests, results from the same selections, counts "
        "in a grid, or what operators got lately",
    )
    batch: BatchSection | None = Field(
        default=None, description="If not given, each selection is decided alone", examples=[{"time": "10s"}]
    )
    period: Annotated[float, DURATION.within(ge=0.01, le=3600)] = Field(
        default=1.0, description="From one decision to the next, in the time of the drives"
    )
    times: Times = Field(
        default="overlapping", description="Which selections are compared: by when their events are"
    )
    every: bool = Field(
        default=False,
        strict=True,
        description="Each selection of a batch must be good enough, not their mean",
    )
    strict: bool = Field(
        default=False, strict=True, description="With 100% not even equal selections are shared"
    )
    neighbours: NeighboursSection = NeighboursSection()
    cell: CellSection = CellSection()
    recent: PositiveDuration = Field(default=5.0, description="For `similarity: recent`: events of so long")
    group: Whole = Field(
        default=100, description="Operators of one selection manager; more are split by place"
    )
    operators: tuple[str, ...] | None = Field(
        default=None, description="Operators that share; if not given, all that can"
    )

    @model_validator(mode="after")
    def _shares_something(self) -> "ReuseSection":
        if self.operators is not None and not self.operators:
            raise unusable("no operator shares", "leave operators out, or name some", at=("operators",))
        return self

    def wants(self, operator: str) -> bool:
        """Whether operators of this name share."""
        return self.operators is None or operator in self.operators

    def config(
        self,
        queries: Sequence[QueryConfig],
        least: Mapping[str, tuple[float, float]],
        starts: Mapping[str, Point],
    ) -> ReuseConfig:
        """What agents are given. ``queries``: those that share; ``least``: of those with a quality of their
        own; ``starts``: where their objects begin."""
        batch = self.batch or BatchSection(count=1)
        near = self.neighbours
        return ReuseConfig(
            managers=self._managers(queries, starts),
            algorithm=self.algorithm,
            least=self.quality.pair,
            by_query=dict(least),
            similarity=self.similarity,
            selections=batch.count or 1,
            seconds=batch.time or 0.0,
            period=self.period,
            times=self.times,
            every=self.every,
            strict=self.strict,
            neighbours=near.k,
            own_m=near.distn,
            reference_m=near.disto,
            again=near.again,
            cell=(self.cell.size, self.cell.time),
            recent_s=self.recent,
        )

    def _managers(
        self, queries: Sequence[QueryConfig], starts: Mapping[str, Point]
    ) -> tuple[ManagerConfig, ...]:
        """One for each type of operators and part of the area, on the broker with most of its operators.
        Those of queries with best effort have their own, which need not wait for strict ones."""
        groups, hosts = Groups(self.group), {}
        for query in queries:
            for operator, host in query.hosts.items():
                if self.wants(operator):
                    key = key_of(query.name, operator)
                    hosts[key] = host
                    hurries = " (best effort)" if query.completeness == "best_effort" else ""
                    groups.put(key, f"{query.logic}: {operator}{hurries}", starts[query.focal])
        found: dict[str, list[str]] = {}
        for key, name in groups.manager_of.items():
            found.setdefault(name, []).append(key)
        managers = []
        for name in sorted(found):
            counts = Counter(hosts[key] for key in found[name])
            broker = min(counts, key=lambda each: (-counts[each], each))
            managers.append(ManagerConfig(name.rstrip("/"), broker, tuple(sorted(found[name]))))
        return tuple(managers)


def reuse_findings(reuse: ReuseSection, queries: Sequence[QueryConfig], at: Place) -> list[Finding]:
    """Everything that keeps queries from sharing. ``queries``: those that shall share."""
    findings = []
    known: set[str] = set()
    for config in queries:
        query, place = query_of(config), (*at, "queries", config.name)
        known.update(query.graph.by_name)
        problem = query_problem(query, config.foretold is not None, config.migrate is not None)
        if problem is None:
            every = [each for each in query.graph.operators if reuse.wants(each.name)]
            problem = next(filter(None, map(sharing_problem, every)), None)
        if problem is not None:
            findings.append(Finding(place, f"it cannot share selections: {problem}", "reuse: false"))
    for number, name in enumerate(reuse.operators or ()):
        if name not in known:
            text = f"no query that shares has an operator {name}"
            findings.append(
                Finding((*at, "reuse", "operators", number), text, f"there are {listed(sorted(known))}")
            )
    if not queries:
        findings.append(Finding((*at, "reuse"), "no query shares: all say reuse: false"))
    return findings


def planned_reuse(
    reuse: ReuseSection | None,
    said: Mapping[str, OwnReuseSection],
    queries: Sequence[QueryConfig],
    starts: Mapping[str, Point],
    at: Place,
) -> ReuseConfig | None:
    """``said``: by query, its key ``reuse``. Raises Unusable."""
    asking = [name for name, each in said.items() if each.asks]
    if reuse is None:
        if asking:
            text = "what shared results must reach is said, but nothing is shared"
            hint = "add reuse: {} beside queries"
            raise Unusable(Finding((*at, "queries", asking[0], "reuse"), text, hint))
        return None
    sharing = [each for each in queries if said[each.name].share]
    findings = reuse_findings(reuse, sharing, at)
    if findings:
        raise Unusable(*findings)
    least = {each.name: said[each.name].pair(reuse.quality) for each in sharing if said[each.name].asks}
    return reuse.config(sharing, least, starts)


def reuse_lines(reuse: ReuseConfig) -> list[str]:
    """Who can share with whom, and where that is decided."""
    words = {"msh": "maximum similarity", "mnh": "maximum neighbour", "none": "nothing is shared"}
    batch = f"batches of {reuse.seconds:g} s" if reuse.seconds else f"batches of {reuse.selections}"
    alone = "each selection alone" if not reuse.seconds and reuse.selections == 1 else batch
    limits = [
        f"{what} {value:g}{unit}"
        for what, value, unit in (
            ("at most", reuse.neighbours, " neighbours"),
            ("objects within", reuse.own_m, " m"),
            ("of the reference within", reuse.reference_m, " m"),
        )
        if value is not None
    ]
    found = [
        f"results are shared by {words[reuse.algorithm]}, {reuse.similarity} similarity, {alone}, each "
        f"{reuse.period:g} s; precision above {reuse.least[0]:g} and recall above {reuse.least[1]:g}"
        + "".join(f", {each}" for each in limits)
    ]
    found += [
        f"  {query} wants precision above {least[0]:g} and recall above {least[1]:g}"
        for query, least in reuse.by_query.items()
    ]
    for each in reuse.managers:
        queries = ", ".join(split_key(key)[0] for key in each.operators)
        alone = " (it has nobody to share with)" if len(each.operators) == 1 else ""
        found.append(f"  selection manager {each.name} on {each.broker}: {queries}{alone}")
    return found
