"""Makes a node's order for its supervisor, and the files that the order needs."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path, PurePosixPath

import msgspec
from msgspec.structs import replace

from node_agent.agent.process import ProcessConfig
from node_agent.extensions.files import is_reference, split_reference
from node_agent.host.setup.journal import path_for
from node_agent.host.setup.order import to_json
from node_agent.supervisor import PROTOCOL
from node_agent.supervisor.order import Program, SupervisorOrder, Undo
from node_agent.transport.keys import derive
from orchestrator.backends.agent_settings import agent_config, process_config, routing_seed
from orchestrator.backends.remote.site import RECORD, Site
from orchestrator.planning.planned import PlannedRun
from orchestrator.services.base import Place, RoutingService
from orchestrator.services.program import SYSTEM_PATH, Argv, Module
from orchestrator.spec.topology import NODE_NETWORK

AGENT_FILE = "agent.json"
SETUP_FILE = "setup.json"
CODE = "extensions"
BY_HAND = "supervisor.sh"
"""A script for users who log in on the node: runs the supervisor's commands with this run's code."""
_FULL_PATH = f"PATH=/usr/local/bin:/usr/bin:/bin:{SYSTEM_PATH}"


@dataclass(frozen=True)
class WholeRun:
    """What is the same for all nodes of a run. The nodes' keys are derived from ``secret``."""

    planned: PlannedRun
    run_id: str
    addresses: Mapping[str, str]
    secret: bytes
    service: RoutingService | None


def supervisor_order(run: WholeRun, site: Site) -> tuple[SupervisorOrder, dict[str, bytes | Path]]:
    """Returns the order and the files of its place; files with secrets are readable by the user only."""
    place = site.place(run.run_id)
    apps, shipped = {}, {}
    for name, plan in run.planned.apps.items():
        apps[name], own = plan.shipped(site.node, str(place))
        shipped.update(own)
    agent = agent_config(run.planned, run.run_id, site.node, run.addresses, run.secret, apps)
    config = process_config(run.planned, agent, run.addresses[site.node], run.service, place / RECORD)
    config, code = _with_reader_shipped(config, str(place))
    by_hand = f'exec {shlex.join(site.command("node_agent.supervisor"))} "$@"\n'
    files: dict[str, bytes | Path] = {
        AGENT_FILE: msgspec.json.encode(config),
        BY_HAND: by_hand.encode(),
        **shipped,
        **code,
    }
    setup = undo = None
    if site.setup is not None:
        files[SETUP_FILE] = to_json(site.setup)
        do, back = (
            tuple(site.deployed.command("node_agent.host.setup", action, str(place / SETUP_FILE)))
            for action in ("--order", "--undo")
        )
        setup = Program("set-up", do, "setup.log", privileged=True)
        undo = Undo(back, path_for(Path(SETUP_FILE)).name)
    services: list[Program] = []
    if run.service is not None and site.starts_daemon:
        home = _routing_place(run, site, place)
        files |= {name: content.encode() for name, content in run.service.files(home).items()}
        services.append(_routing_program(run.service, home, site))
    command = site.deployed.command("node_agent.agent", "--config", str(place / AGENT_FILE))
    order = SupervisorOrder(
        run=run.run_id,
        node=site.node,
        protocol=PROTOCOL,
        lease=run.planned.experiment.lease,
        setup=setup,
        services=tuple(services),
        agent=Program("agent", tuple(command), "agent.log"),
        undo=undo,
        # With ``enter``, several nodes share a host, whose load is probed once.
        probes_host=not site.enter,
    )
    return order, files


def _with_reader_shipped(config: ProcessConfig, place: str) -> tuple[ProcessConfig, dict[str, Path]]:
    """Returns the order with a user's link-state reader named as on the node, and the reader's file."""
    if not is_reference(config.link_state.kind):
        return config, {}
    path, attribute = split_reference(config.link_state.kind)
    name = f"{CODE}/routing/{path.name}"
    link_state = replace(config.link_state, kind=f"{place}/{name}:{attribute}")
    return replace(config, link_state=link_state), {name: path}


def _routing_place(run: WholeRun, site: Site, place: PurePosixPath) -> Place:
    return Place(
        site.node,
        IPv4Address(site.address),
        manet_network(run.addresses.values()),
        site.interface,
        place,
        routing_seed(run.planned.experiment.seed, site.node),
        tuple(IPv4Address(address) for address in run.addresses.values()),
        derive(run.secret, b"routing"),
    )


def _routing_program(service: RoutingService, place: Place, site: Site) -> Program:
    program = service.program(place)
    match program:
        case Module():
            argv = tuple(site.deployed.command(program.package, *program.words))
        case Argv():
            argv = ("env", _FULL_PATH, *program.argv)
    undo: tuple[str, ...] = ()
    if service.route_protocol is not None:
        number = str(service.route_protocol)
        undo = tuple(site.deployed.command("node_agent.host.route_removal", place.interface, number))
    return Program(f"the routing daemon ({service.protocol})", argv, "routing.log", True, undo)


def manet_network(addresses: Iterable[str]) -> IPv4Network:
    """Returns the smallest usual network that contains all nodes."""
    hosts = [IPv4Address(address) for address in addresses]
    if all(host in NODE_NETWORK for host in hosts):
        return NODE_NETWORK
    network = IPv4Network((hosts[0], 24), strict=False)
    while not all(host in network for host in hosts):
        network = network.supernet()
    return network
