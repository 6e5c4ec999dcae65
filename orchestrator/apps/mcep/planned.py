"""From a section to what each node is given, and everything that is wrong on the way."""

from collections.abc import Iterator, Sequence
from math import ceil

from node_agent.apps.mcep.areas import Areas, check_areas, grid, shaped
from node_agent.apps.mcep.checks import check_query
from node_agent.apps.mcep.config import (
    Limits,
    QueryConfig,
    Settings,
    When,
    WhenFar,
    WhenMoved,
    WhenPoor,
    WhenTimed,
    deployment_of,
    drive_of,
    drive_text,
    query_of,
)
from node_agent.apps.mcep.deployment import check_deployment
from node_agent.apps.mcep.geometry import Box, Point
from node_agent.apps.mcep.model import McepError
from node_agent.apps.mcep.situations import LANE, SITUATIONS, graph_of
from orchestrator.apps.mcep.cameras import Filmed, faces_seen, in_view, known_faces
from orchestrator.apps.mcep.migrating import MigrateSection, between, unmovable
from orchestrator.apps.mcep.plan import Recorded
from orchestrator.apps.mcep.reusing import planned_reuse
from orchestrator.apps.mcep.section import InterestSection, InterestSettings, QuerySection, SwitchSection
from orchestrator.errors import BadInput
from orchestrator.model.trace import Drives, Sample
from orchestrator.spec.application import AppEntry
from orchestrator.spec.problems import Finding, Place, Unusable, did_you_mean, shown

Known = dict[str, tuple[str, ...]]
"""Faces of friends by name."""

MOST_SAMPLES = 2_000_000
"""Of all drives together: each agent, and the run's manifest, has them as text."""


def section_of(entry: AppEntry) -> InterestSettings:
    assert isinstance(entry.section, InterestSection), "the registry finds applications by their sections"
    return entry.section.interest.of_one_client_each()


def planned_interest(entry: AppEntry) -> Recorded:
    """Raises Unusable with everything that is wrong, by places in the file."""
    section, at = section_of(entry), entry.at("interest")
    nodes = entry.scenario.topology.node_names
    clients = section.clients or tuple(node for node in nodes if node not in section.brokers)
    end = entry.scenario.warmup + entry.scenario.duration
    until = end if section.stop is None else section.stop
    findings = list(_node_findings(section, clients, nodes, until, at))
    if findings:
        raise Unusable(*findings)
    areas = _areas(section, entry, at)
    if until > end:
        text = f"clients would leave after {until:g} s, and the run ends after {end:g} s"
        raise Unusable(Finding((*at, "stop"), text, "leave it out, and they stay to the end"))
    drives = _drives(entry, clients, end, at)
    cameras = section.cameras.nodes if section.cameras is not None else ()
    for number, camera in enumerate(cameras):
        if len({(each.x, each.y) for each in drives[camera]}) > 1:
            text = f"{camera} moves, and cameras stand"
            hint = "give it a place: mobility: {model: stations, at: {cam1: [50 m, 50 m]}}"
            raise Unusable(Finding((*at, "cameras", "nodes", number), text, hint))
    everybody = tuple(client for client in clients if client not in cameras)
    try:
        known = {
            name: {friend: known_faces(friend, everybody) for friend in each.friends}
            for name, each in section.queries.items()
        }
    except BadInput as error:
        raise Unusable(Finding((*at, "cameras"), str(error))) from error
    queries = _queries(section, areas, drives, known)
    needed = max(_needed(each) for each in section.queries.values())
    ttl = needed if section.keep is None else section.keep
    boxes = {name: (box.x0, box.y0, box.x1, box.y1) for name, box in areas.boxes.items()}
    limits = Limits(section.room.waiting, section.room.stored)
    polygons = {name: tuple((x, y) for x, y in each.corners) for name, each in areas.polygons.items()}
    starts = {name: Point(samples[0].x, samples[0].y) for name, samples in drives.items()}
    said = {name: each.reuse for name, each in section.queries.items()}
    reuse = planned_reuse(section.reuse, said, queries, starts, at)
    move = any(each.migrate is not None for each in queries)
    distances = between(entry.scenario.topology, list(boxes)) if move else None
    settings = Settings(
        boxes, clients, queries, section.read, until, ttl, limits, polygons, cameras, reuse, distances
    )
    _check(settings, section, drives, at)
    texts = {name: drive_text(samples) for name, samples in drives.items()}
    return Recorded(settings, texts, *_filmed(section, settings, texts, everybody, at))


def _filmed(
    section: InterestSettings,
    settings: Settings,
    drives: dict[str, str],
    everybody: tuple[str, ...],
    at: Place,
) -> tuple[tuple[str, ...], Filmed]:
    if section.cameras is None:
        return (), {}

    def times(camera: str) -> list[float]:
        first = settings.phase(camera)
        return [first + n * settings.every for n in range(ceil((settings.until - first) / settings.every))]

    read = {name: drive_of(text) for name, text in drives.items()}
    cameras = {name: read[name] for name in settings.cameras}
    seen = in_view(cameras, {name: read[name] for name in everybody}, section.cameras.view, times)
    try:
        return faces_seen(seen, everybody)
    except BadInput as error:
        raise Unusable(Finding((*at, "cameras"), str(error))) from error


def _node_findings(
    section: InterestSettings, clients: tuple[str, ...], nodes: tuple[str, ...], until: float, at: Place
) -> Iterator[Finding]:
    def missing(place: Place, node: str) -> Iterator[Finding]:
        if node not in nodes:
            yield Finding((*at, *place), f"there is no node {shown(node)}", did_you_mean(node, nodes))

    for node in section.brokers:
        yield from missing(("brokers", node), node)
    for number, node in enumerate(section.clients or ()):
        yield from missing(("clients", number), node)
        if node in section.brokers:
            yield Finding((*at, "clients", number), f"{node} is a broker, so it cannot be a client")
    if not clients:
        yield Finding((*at, "clients"), "all nodes are brokers: nobody is left to see anything")
    cameras = section.cameras.nodes if section.cameras is not None else ()
    for number, node in enumerate(cameras):
        if node not in clients:
            text = f"{shown(node)} is no client, so it has no sensors"
            yield Finding((*at, "cameras", "nodes", number), text, did_you_mean(node, clients))
    for name, query in section.queries.items():
        place = (*at, "queries", name)
        yield from _friend_findings(query, clients, cameras, place)
        if query.focal not in clients:
            text = f"{shown(query.focal)} is no client, so it has no place to follow"
            yield Finding((*place, "focal"), text, did_you_mean(query.focal, clients))
        operators = graph_of(query.situation, {}).by_name
        named: dict[Place, str] = {} if query.home is None else {("home",): query.home}
        for operator, host in query.hosts.items():
            named[("hosts", operator)] = host
            if operator not in operators:
                text = f"{query.situation} has no operator {shown(operator)}"
                yield Finding((*place, "hosts", operator), text, f"it has {', '.join(operators)}")
        for where, host in named.items():
            if host not in section.brokers:
                text = f"{shown(host)} is no broker"
                yield Finding((*place, *where), text, did_you_mean(host, section.brokers))
        if (moves := section.migration(query)) is not None:
            inside = (*at, "migrate") if query.migrate is None else (*place, "migrate")
            for each in moves.findings(query.situation, list(section.brokers), until):
                yield Finding((*inside, *each.at), each.message, each.hint)
            predicts = query.predict is not None
            for each in unmovable(query.suppression, query.completeness, predicts):
                yield Finding((*place, *each.at), each.message, each.hint)
        if query.completeness == "strong" and query.cells is None:
            text = "queries share the graph of a region, and two objects are hardly ever at one place"
            yield Finding((*place, "completeness"), text, "say cells: 200 m, so that regions are the same")
        if query.switch.quality is not None and len(section.brokers) > 1:
            text = f"events are counted on one broker only, and here are {len(section.brokers)}"
            yield Finding((*place, "switch", "quality"), text, "switch by time or place: switch: {after: 5s}")
        if query.suppression and (query.predict is not None or query.completeness == "strong"):
            text = "suppression is for one graph that moves, not for graphs that are prepared or shared"
            yield Finding((*place, "suppression"), text, "leave it out")
        if query.predict is not None and query.predict.ahead is None and len(section.brokers) > 1:
            text = "how long history takes is counted on one broker only, and here are several"
            yield Finding((*place, "predict"), text, "say how long before graphs begin: ahead: 2s")


def _friend_findings(
    query: QuerySection, clients: tuple[str, ...], cameras: tuple[str, ...], place: Place
) -> Iterator[Finding]:
    for number, friend in enumerate(query.friends):
        if friend not in clients or friend in cameras:
            text = f"{shown(friend)} is no client with a face"
            yield Finding((*place, "friends", number), text, did_you_mean(friend, clients))
    if not SITUATIONS[query.situation].knows:
        if query.friends:
            yield Finding((*place, "friends"), f"{query.situation} looks for nobody", "situation: friend")
    elif not query.friends:
        yield Finding((*place, "friends"), "nobody is looked for", "for example friends: [car2]")
    elif not cameras:
        text = f"{query.situation} needs cameras"
        yield Finding((*place, "situation"), text, "for example cameras: {nodes: [cam1]}, beside queries")


def _areas(section: InterestSettings, entry: AppEntry, at: Place) -> Areas:
    area = entry.scenario.topology.area
    whole = Box(0.0, 0.0, area.width, area.height)
    given = {name: each for name, each in section.brokers.items() if each is not None}
    try:
        if not given:
            return grid(list(section.brokers), whole)
        if len(given) < len(section.brokers):
            first = next(name for name in section.brokers if name not in given)
            raise McepError(f"{first} has no area, and others have one; give all of them one, or none")
        areas = shaped({name: each.shape for name, each in given.items()})
        check_areas(areas, whole)
    except McepError as error:
        raise Unusable(Finding((*at, "brokers"), str(error))) from error
    return areas


def _drives(entry: AppEntry, clients: tuple[str, ...], end: float, at: Place) -> Drives:
    """The movements of the run, as its network sees them."""
    topology = entry.scenario.topology
    nodes = topology.node_names
    try:
        found = topology.drives(entry.scenario.seed, end)
    except BadInput as error:
        raise Unusable(Finding(at, str(error))) from error
    assert set(nodes) == set(found)
    if sum(len(found[name]) for name in clients) > MOST_SAMPLES:
        text = f"the drives of {len(clients)} clients have more than {MOST_SAMPLES:,} samples"
        raise Unusable(Finding(at, text, "use fewer clients or a shorter run"))
    return {name: found[name] for name in clients}


def _queries(
    section: InterestSettings, areas: Areas, drives: Drives, known: dict[str, Known]
) -> tuple[QueryConfig, ...]:
    """Strong queries that ask for the same have the home of the first of them, unless they name another."""
    homes: dict[str, str] = {}
    found = []
    for name, said in section.queries.items():
        start = drives[said.focal][0]
        home = said.home or areas.leaf(Point(start.x, start.y))
        moves = section.migration(said)
        query = _query(name, said, home, drives[said.focal], known[name], moves)
        if query.asks and said.home is None and query.asks in homes:
            query = _query(name, said, homes[query.asks], drives[said.focal], known[name], moves)
        homes.setdefault(query.asks, query.home)
        found.append(query)
    return tuple(found)


def _query(
    name: str,
    said: QuerySection,
    home: str,
    drive: Sequence[Sample],
    known: Known,
    moves: MigrateSection | None,
) -> QueryConfig:
    operators = graph_of(said.situation, {}).by_name
    return QueryConfig(
        name,
        said.situation,
        said.focal,
        said.radius or (said.edge or 0.0) / 2,
        home,
        {operator: said.hosts.get(operator, home) for operator in operators},
        said.values,
        said.history,
        said.order,
        said.completeness,
        said.suppression,
        switch_of(said.switch),
        "circle" if said.edge is None else "square",
        said.cells or 0.0,
        None if said.predict is None else said.predict.foretold(drive),
        known,
        None if moves is None else moves.config(said.situation, drive),
    )


def switch_of(switch: SwitchSection) -> When:
    if switch.after is not None:
        return WhenTimed(switch.after)
    if switch.distance is not None:
        return WhenFar(switch.distance)
    if switch.quality is not None:
        return WhenPoor(switch.quality.precision, switch.quality.recall, switch.quality.look_back)
    return WhenMoved()


def _needed(said: QuerySection) -> float:
    """For how long brokers must keep events."""
    graph = graph_of(said.situation, said.values)
    look_back = 0.0 if said.switch.quality is None else said.switch.quality.look_back
    longest = max(graph.additional_time(source.name) for source in graph.sources)
    if said.predict is not None:
        look_back = max(look_back, said.predict.look_back)
    return max(said.history + longest, look_back, 1.0)


def _check(settings: Settings, section: InterestSettings, drives: Drives, at: Place) -> None:
    findings = []
    lanes = any(sample.lane for samples in drives.values() for sample in samples)
    for config in settings.queries:
        place = (*at, "queries", config.name)
        try:
            query = query_of(config)
            check_query(query, settings.ttl)
        except McepError as error:
            findings.append(Finding(place, str(error)))
            continue
        if not lanes and any(source.type == LANE for source in query.graph.sources):
            text = f"{config.situation} needs changes of lanes, and nodes that move like this have no lanes"
            findings.append(Finding((*place, "situation"), text, "let them drive: mobility: {model: sumo}"))
    if not findings:
        try:
            check_deployment(deployment_of(settings))
        except McepError as error:
            findings.append(Finding(at, str(error)))
    if findings:
        raise Unusable(*findings)
