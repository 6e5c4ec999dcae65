"""Puts runs of any experiments side by side: groups them by what differs, and compares groups by seed.

Runs that differ in nothing but their seed are one group; the first group is the base of all comparisons.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.errors import BadInput
from orchestrator.results import registry
from orchestrator.results.cells import SEED, apps_of, spread
from orchestrator.results.comparison import ENOUGH_PAIRS, compare, ends, further, pairs_by_seed
from orchestrator.results.contribution import Metric
from orchestrator.results.views import label_of, short

Document = dict[str, Any]
_WORDS = {
    ("more", True): "better",
    ("more", False): "worse",
    ("less", True): "worse",
    ("less", False): "better",
    ("", True): "more",
    ("", False): "less",
}
IGNORED = frozenset({SEED, "name", "sweep", "expect", "timeouts", "lease", "load", "clocks", "quorum"})
"""Keys of an experiment that do not say what was compared."""
MOST_DIFFERENCES = 4
_KINDS = frozenset({"protocol", "model", "policy", "name", "preset"})
"""Keys that say of what kind a section is."""


class Member(NamedTuple):
    """One run. ``argument``: which of the things to compare it belongs to. ``parameters``: all values of its
    experiment, by path, with the names of choices in their sweep's places.
    """

    argument: int
    name: str
    summary: Document
    usable: bool
    parameters: Mapping[str, Any]

    @property
    def seed(self) -> Any:
        return self.summary.get("seed")


class Group(NamedTuple):
    label: str
    members: tuple[Member, ...]

    def used(self) -> list[Member]:
        return [member for member in self.members if member.usable]


def parameters_of(spec: Any, factors: Mapping[str, Any], commit: str = "") -> dict[str, Any]:
    """Returns the values of a resolved experiment by path; factors of a sweep in place of what they set."""
    flat = dict(_flattened(spec if isinstance(spec, Mapping) else {}, ""))
    own = {path: value for path, value in factors.items() if path != SEED}
    kept = {
        path: value
        for path, value in flat.items()
        if path.partition(".")[0] not in IGNORED
        and not any(path == factor or path.startswith(f"{factor}.") for factor in own)
    }
    return {**own, **kept, **({"commit": commit} if commit else {})}


def _flattened(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            yield from _flattened(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner


def grouped(members: Sequence[Member], labels: Sequence[str] = ()) -> list[Group]:
    """Returns the groups in the order of their first runs. ``labels``: one for each argument."""
    differing = _differing(members)
    groups: dict[tuple[str, ...], list[Member]] = {}
    for member in members:
        own = (
            (str(member.argument), *map(_text, _factors(member).values())) if labels or not differing else ()
        )
        key = own or tuple(_text(member.parameters.get(path)) for path in differing)
        groups.setdefault(key, []).append(member)
    named = [(_label(those[0], _telling(differing), labels), those) for those in groups.values()]
    taken = Counter(label for label, _ in named)
    return [
        Group(label if taken[label] == 1 else f"{label} ({those[0].name})", tuple(those))
        for label, those in named
    ]


def _differing(members: Sequence[Member]) -> list[str]:
    paths = dict.fromkeys(path for member in members for path in member.parameters)
    return [path for path in paths if len({_text(member.parameters.get(path)) for member in members}) > 1]


def _telling(differing: Sequence[str]) -> list[str]:
    """Returns the paths that are worth naming: where the kind of a section differs, the rest follows."""
    kinds = sorted((path for path in differing if path.rpartition(".")[2] in _KINDS and "." in path), key=len)
    sections = [path.rpartition(".")[0] for path in kinds]
    return [
        path
        for path in differing
        if not any(
            path != kind and path.startswith(f"{section}.")
            for kind, section in zip(kinds, sections, strict=True)
        )
    ]


def _factors(member: Member) -> dict[str, Any]:
    return {path: value for path, value in (member.summary.get("factors") or {}).items() if path != SEED}


def _label(member: Member, telling: Sequence[str], labels: Sequence[str]) -> str:
    if labels:
        return " ".join(filter(None, (labels[member.argument], label_of(_factors(member)))))
    if not telling or len(telling) > MOST_DIFFERENCES:
        return " ".join(filter(None, (member.name, label_of(_factors(member)))))
    return ", ".join(f"{_key(path)} = {_short(member.parameters.get(path))}" for path in telling)


def _key(path: str) -> str:
    """Calls a section by its name: ``routing`` for ``routing.protocol``."""
    section, _, last = path.rpartition(".")
    return short(section if section and last in _KINDS else path)


def _short(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return f"{len(value)} entries" if value else "none"
    return value if value is not None else "–"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def common_apps(groups: Sequence[Group]) -> dict[str, str]:
    """Returns the applications that are compared, with their kinds: those that the base and another group
    have. Raises BadInput if there is nothing to compare. Summaries need to have kinds of applications only.
    """
    if len(groups) < 2:
        text = "there is only one kind of run: all have the same parameters"
        raise BadInput(f"{text}\nname other runs, or tell them apart with --label, one for each")
    if not any(group.used() for group in groups):
        raise BadInput("none of these runs can be used: they are not valid, or not judged (rove status)")
    kinds = [_kinds(group) for group in groups]
    common = {app: kind for app, kind in kinds[0].items() if any(each.get(app) == kind for each in kinds[1:])}
    if not common:
        apps = "; ".join(
            f"{group.label}: {', '.join(found) or 'none'}" for group, found in zip(groups, kinds, strict=True)
        )
        raise BadInput(f"these runs have nothing in common: no application of one is in another ({apps})")
    return common


def compared(groups: Sequence[Group]) -> Document:
    """Returns the document of the comparison. Raises BadInput if there is nothing to compare."""
    apps = common_apps(groups)
    found = {app: _of_app(app, kind, groups) for app, kind in apps.items()}
    return {
        "base": groups[0].label,
        "groups": [_group_document(group) for group in groups],
        "apps": found,
        "sentences": [sentence for app, entry in found.items() for sentence in _sentences(app, entry, found)],
    }


def _group_document(group: Group) -> Document:
    return {
        "label": group.label,
        "runs": [member.summary["run"] for member in group.used()],
        "seeds": [member.seed for member in group.used()],
        "excluded": [member.summary["run"] for member in group.members if not member.usable],
    }


def _kinds(group: Group) -> dict[str, str]:
    members = group.used() or group.members
    return {app: found["kind"] for member in members for app, found in apps_of(member.summary).items()}


def _of_app(app: str, kind: str, groups: Sequence[Group]) -> Document:
    every = registry.metrics(kind).values()
    metrics = [each for each in every if each.compared] or [
        each for each in every if each.console is not None
    ]
    rows = {metric.name: _of_metric(app, metric, groups) for metric in metrics}
    known = {name: row for name, row in rows.items() if any(cell["n"] for cell in row["groups"])}
    if not known:
        raise BadInput(f"these runs have nothing in common: no figure of {app} is known of any of them")
    return {"kind": kind, "metrics": known}


def _of_metric(app: str, metric: Metric, groups: Sequence[Group]) -> Document:
    base = _by_seed(groups[0], app, metric.name)
    cells = []
    for number, group in enumerate(groups):
        own = _by_seed(group, app, metric.name)
        cell: Document = {"label": group.label, **spread(list(own.values()))}
        if number:
            pairs = pairs_by_seed(own, base)
            ratio = compare(pairs)
            cell |= {
                "pairs": ratio.pairs,
                "ratio_of_means": ratio.ratio_of_means if pairs else _unpaired(own, base),
                "ratio_of_means_95": ends(ratio.ratio_of_means_95),
                "mean_of_ratios": ratio.mean_of_ratios,
                "mean_of_ratios_95": ends(ratio.mean_of_ratios_95),
                **further(ratio),
            }
        cells.append(cell)
    return {"unit": metric.unit, "better": metric.better, "what": metric.gain or metric.name, "groups": cells}


def _by_seed(group: Group, app: str, metric: str) -> dict[Any, float | None]:
    """Returns the value of each seed; of several runs with one seed, their mean."""
    values: dict[Any, list[float | None]] = {}
    for member in group.used():
        found = apps_of(member.summary).get(app, {"metrics": {}})["metrics"].get(metric)
        values.setdefault(member.seed, []).append(found if isinstance(found, int | float) else None)
    return {seed: spread(those)["mean"] for seed, those in values.items()}


def _unpaired(own: Mapping[Any, float | None], base: Mapping[Any, float | None]) -> float | None:
    ours, theirs = (spread(list(each.values()))["mean"] for each in (own, base))
    return None if ours is None or not theirs else ours / theirs


def _sentences(app: str, entry: Document, apps: Mapping[str, Any]) -> Iterator[str]:
    headlines = [each.name for each in registry.metrics(entry["kind"]).values() if each.headline]
    whose = f"{app}: " if len(apps) > 1 else ""
    for name in [name for name in headlines if name in entry["metrics"]] or list(entry["metrics"])[:1]:
        row = entry["metrics"][name]
        base, *others = row["groups"]
        for cell in others:
            yield whose + _sentence(row["what"], row["better"], base, cell)


def _sentence(what: str, better: str, base: Document, cell: Document) -> str:
    ours, theirs, ratio = cell["label"], base["label"], cell["ratio_of_means"]
    if not cell["n"] or not base["n"]:
        return f"{ours if not cell['n'] else theirs} has no {what}: nothing to compare."
    if ratio is None:
        return f"{theirs} has a {what} of 0, so that no ratio can be given."
    begin = f"{ours} has {ratio:.2f} × the {what} of {theirs}"
    if not cell["pairs"]:
        return f"{begin}, but no seed has both: different movements were measured, which is no comparison."
    pairs = f"{cell['pairs']} pair{'' if cell['pairs'] == 1 else 's'} of the same seed"
    interval = cell["ratio_of_means_95"]
    if cell["pairs"] < ENOUGH_PAIRS:
        return f"{begin} ({pairs}). That is no result yet: at least {ENOUGH_PAIRS} pairs are needed."
    if interval is None:
        return f"{begin} ({pairs}); no interval can be given."
    low, high = interval
    text = f"{begin} (95 % interval {low:.2f} to {high:.2f}, {pairs})"
    if low <= 1.0 <= high:
        return f"{text}: no difference is shown."
    return f"{text}: {_WORDS[better, low > 1]}."
