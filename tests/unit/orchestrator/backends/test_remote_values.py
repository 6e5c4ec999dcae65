"""Nodes on other machines, as far as it is values: the journal, orders, verdicts."""

import json
import subprocess
import sys
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import pytest

import node_agent
from node_agent.agent.process import ProcessConfig
from node_agent.apps.dataflow.config import DataflowConfig
from node_agent.host.setup.order import Lan, SetupOrder
from node_agent.model.telemetry import AgentStart, AgentStop
from node_agent.supervisor.order import decode_order
from node_agent.telemetry.segment_log import SegmentLog
from orchestrator.backends.remote.ledger import KIND, leases_over, node_entries, uncollected, waiting
from orchestrator.backends.remote.orders import WholeRun, manet_network, supervisor_order
from orchestrator.backends.remote.site import Site
from orchestrator.deployment.deploy import Deployed
from orchestrator.lifecycle.rejudging import NO_PLAN, after_arrival, rejudge
from orchestrator.planning.load import load_experiment
from orchestrator.runs import run_directory
from orchestrator.runs.journal import Journal
from orchestrator.runs.phases import Ending, Phase
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Judgement, judge_dead
from orchestrator.services.registry import service_of
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.inventory import Host
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.host_keys import KnownHosts
from tests.unit.specs import deployed, experiment, planned

ROOT = Path(__file__).parents[4]
KEY = bytes(range(32))


def test_the_pi_lab_differs_from_the_emulated_one_in_topology_and_backend_only() -> None:
    emulated, real = (load_experiment(ROOT / "experiments" / f"{name}.yaml") for name in ("lab", "pi-lab"))
    assert (emulated.backend, real.backend) == ("netns", "ssh")
    differing = {"topology", "backend", "timeouts"}
    assert emulated.model_dump(exclude=differing) == real.model_dump(exclude=differing)
    assert len(real.topology.real_nodes()) == 5
    texts = [(ROOT / "experiments" / f"{name}.yaml").read_text().splitlines() for name in ("lab", "pi-lab")]
    bodies = [[line for line in lines if not line.startswith("#")] for lines in texts]
    unlike = [pair for pair in zip(*bodies, strict=True) if pair[0] != pair[1]]
    assert [pair[0].partition(":")[0] for pair in unlike] == ["topology", "backend"]


def real(**changes: Any) -> Experiment:
    hosts = {
        name: {"host": f"192.168.1.{number}"} for number, name in enumerate(("n1", "n2", "n3", "n4"), 21)
    }
    topology = {
        "name": "lab",
        "nodes": list(hosts),
        "area": "50 m x 50 m",
        "mobility": {"model": "static", "grid": {"columns": 4, "spacing": "10 m"}},
        "defaults": {"user": "pi"},
        "hosts": hosts,
    }
    return experiment(topology=topology, backend="ssh", **changes)


def test_other_machines_are_given_more_time_unless_the_file_says_how_much() -> None:
    assert real().timeouts.up > experiment().timeouts.up
    stated = real(timeouts={"up": "7s"}).timeouts
    assert (stated.up, stated.collect) == (7.0, real().timeouts.collect)


@pytest.mark.parametrize(
    ("addresses", "network"),
    [
        (("10.77.0.1", "10.77.3.9"), "10.77.0.0/16"),
        (("192.168.5.1", "192.168.5.200"), "192.168.5.0/24"),
        (("192.168.5.1", "192.168.6.1"), "192.168.4.0/22"),
    ],
)
def test_the_network_of_the_nodes_holds_them_all(addresses: tuple[str, ...], network: str) -> None:
    assert manet_network(addresses) == IPv4Network(network)


def site(node: str, tmp_path: Path, **changes: Any) -> Site:
    host = Host(node, "192.168.1.21", 22, "pi")
    deployed = Deployed("/home/pi", "/home/pi/.rove", "/usr/bin/python3", ("/home/pi/.rove/store/abc",))
    connection = Connection(host, KnownHosts(tmp_path / "known"))
    site = Site(node, connection, deployed, "10.77.0.1", "wlan0")
    return replace(site, **changes)


def order_of(
    tmp_path: Path, routing: str | dict[str, str], switching: dict[str, str] | None = None, **changes: Any
) -> tuple[Any, dict[str, Any]]:
    spec = real(routing=routing, switching=switching or {})
    addresses = {name: node.address for name, node in spec.topology.real_nodes().items()}
    run = WholeRun(planned(spec), "r1", addresses, KEY, service_of(spec.routing))
    order, files = supervisor_order(run, site("n1", tmp_path, **changes))
    return decode_order(msgspec.json.encode(order)), files


def test_a_supervisor_is_told_to_start_the_daemon_as_root_and_the_agent_as_the_user(tmp_path: Path) -> None:
    order, files = order_of(tmp_path, "olsr")
    (daemon,) = order.services
    assert daemon.privileged and not order.agent.privileged and order.setup is None
    assert daemon.argv[-4:] == ("-m", "node_agent.olsr", "--config", "/home/pi/.rove/runs/r1/n1/olsr.json")
    told = msgspec.json.decode(files["agent.json"], type=ProcessConfig)
    assert told.host == "10.77.0.1" and PurePosixPath(told.segments).parts[-2:] == ("record", "segments")
    assert set(files) == {"agent.json", "supervisor.sh", "olsr.json"}


def test_extensions_out_of_files_go_to_the_node(tmp_path: Path) -> None:
    policy, reader = tmp_path / "my_policy.py", tmp_path / "my_reader.py"
    policy.write_text("from node_agent.switching import Choice\ndef decide(s, m): return Choice(None)\n")
    reader.write_text(
        "class Reader:\n    def __init__(self, source): pass\n    async def read(self): return None\n"
    )
    _, files = order_of(
        tmp_path,
        {"protocol": "olsr", "reader": f"{reader}:Reader"},
        {"policy": f"{policy}:decide"},
    )
    sent = {content: name for name, content in files.items() if isinstance(content, Path)}
    told = msgspec.json.decode(files["agent.json"], type=ProcessConfig)
    assert told.link_state.kind == f"/home/pi/.rove/runs/r1/n1/{sent[reader]}:Reader"
    (app,) = told.agent.apps
    dataflow = msgspec.json.decode(app.config, type=DataflowConfig)
    assert dataflow.switching.rule.policy == f"/home/pi/.rove/runs/r1/n1/{sent[policy]}:decide"


def test_daemons_of_others_are_found_where_the_node_has_them(tmp_path: Path) -> None:
    order, _ = order_of(tmp_path, "babel")
    (daemon,) = order.services
    assert daemon.argv[0] == "env" and daemon.argv[2] == "babeld"
    assert "/usr/sbin" in daemon.argv[1].split("=")[1].split(":")


def test_no_daemon_is_started_where_one_runs_already(tmp_path: Path) -> None:
    order, files = order_of(tmp_path, "olsr", starts_daemon=False)
    assert order.services == () and set(files) == {"agent.json", "supervisor.sh"}


def test_who_logs_in_on_a_node_has_the_supervisors_commands_at_hand(tmp_path: Path) -> None:
    """Nothing of ours is installed there: the code of the run is where it was deployed to."""
    code = tuple(str(Path(str(module.__file__)).parents[1]) for module in (node_agent, msgspec))
    deployed = Deployed(str(tmp_path), f"{tmp_path}/.rove", sys.executable, code)
    _, files = order_of(tmp_path, "olsr", deployed=deployed)
    (tmp_path / "supervisor.sh").write_bytes(files["supervisor.sh"])
    argv = ["sh", "supervisor.sh", "status", deployed.rove]
    done = subprocess.run(argv, cwd=tmp_path, env={}, capture_output=True, check=True, timeout=50)
    assert msgspec.json.decode(done.stdout) == {"places": []}


def test_a_killed_set_up_can_be_undone_with_its_own_code(tmp_path: Path) -> None:
    order, files = order_of(tmp_path, "olsr", setup=SetupOrder("r1", "wlan0", "10.77.0.1/16", Lan()))
    assert "setup.json" in files and order.setup.privileged
    assert order.undo.argv == tuple("--undo" if word == "--order" else word for word in order.setup.argv)
    assert order.undo.file == "setup.json.undo"


def test_the_secret_is_in_no_file_but_the_agents(tmp_path: Path) -> None:
    order, files = order_of(tmp_path, "olsr")
    agent = msgspec.json.decode(files.pop("agent.json"))
    keys = agent["agent"]["keys"].values()
    assert keys
    for key in keys:
        assert key and key not in msgspec.json.encode(order).decode()
        assert all(key.encode() not in content for content in files.values())


def test_commands_enter_a_node_that_its_host_only_carries(tmp_path: Path) -> None:
    inside = site("n1", tmp_path, enter=("vcmd", "--"))
    assert inside.command("node_agent.supervisor", "status")[:3] == ["vcmd", "--", "env"]


def journal_of(run: RunDirectory) -> Journal:
    journal = Journal.create(run.journal)
    for node in ("n1", "n2"):
        place = f"/home/pi/.rove/runs/r1/{node}"
        journal.intend(KIND, node=node, place=place, supervisor=["python3", "-m", "k"], lease=60.0)
    return journal


def test_the_journal_knows_what_became_of_each_node(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "lab", "r1")
    journal = journal_of(run)
    journal.done(1, ended=True)
    journal.done(2, ended=True)
    journal.done(1, collected=True)
    journal.done(1, removed=True)
    assert waiting(run.path) == ["n2"]
    first, second = node_entries([json.loads(line) for line in run.journal.read_text().splitlines()])
    assert (first.ended, first.collected, first.removed) == (True, True, True)
    assert (second.ended, second.collected, second.removed, second.lease) == (True, False, False, 60.0)
    journal.done(2, removed=True)
    assert waiting(run.path) == [] and uncollected(run.path) == ["n2"], "what is lost was not collected"
    journal.close()


def test_a_journal_of_an_earlier_version_is_understood(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "lab", "r1")
    with Journal.create(run.journal) as journal:
        journal.intend(KIND, node="n1", place="/p/n1", keeping=["python3", "-m", "k"], lease=60.0)
    (node,) = node_entries([json.loads(line) for line in run.journal.read_text().splitlines()])
    assert node.supervisor == ("python3", "-m", "k")


def test_leases_are_over_when_the_journal_was_closed_long_enough_ago(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "lab", "r1")
    journal = journal_of(run)
    assert not leases_over(run.path)
    journal.close()
    assert not leases_over(run.path), "just now"
    lines = run.journal.read_text().splitlines()
    ancient = {**json.loads(lines[-1]), "t": "2020-01-01T00:00:00.000+00:00"}
    run.journal.write_text("\n".join([*lines[:-1], json.dumps(ancient)]) + "\n")
    assert leases_over(run.path)


def phase(name: str, outcome: str = "ok", reason: str = "") -> dict[str, Any]:
    facts = {"outcome": outcome, "seconds": 1.0, "reason": reason}
    return {"kind": "phase", "phase": name, "state": "finished", **facts}


def told(name: str, **unreachable: str) -> dict[str, Any]:
    ok = [node for node in ("n1", "n2") if node not in unreachable]
    return {"kind": "nodes", "phase": name, "ok": ok, "failed": {}, "unreachable": unreachable}


HISTORY = [
    *(phase(name) for name in ("plan", "up", "converge", "warm-up", "measure")),
    told("stop", n2="lost"),
    phase("stop", "degraded", "n2: lost"),
    told("collect", n2="lost; rove collect fetches it"),
    phase("collect", "degraded", "n2: lost"),
    phase("down"),
]


def endings(waiting: list[str], in_order: list[str], events: list[dict[str, Any]] = HISTORY) -> list[Ending]:
    results = after_arrival(events, waiting, in_order, 0.5)
    return [result.ending for result in results if result.phase in (Phase.STOP, Phase.COLLECT)]


def test_an_arrived_record_mends_collection_and_if_it_says_so_the_stop() -> None:
    assert endings(["n2"], []) == [Ending.DEGRADED, Ending.DEGRADED]
    assert endings([], []) == [Ending.DEGRADED, Ending.OK]
    assert endings([], ["n1", "n2"]) == [Ending.OK, Ending.OK]


def test_a_measurement_that_lost_a_node_is_not_mended_by_its_record() -> None:
    broken = [told("measure", n2="lost"), phase("measure", "degraded", "n2: lost"), *HISTORY[5:]]
    (measured, *_) = after_arrival(broken, [], ["n1", "n2"], 0.5)
    assert measured.ending is Ending.DEGRADED


@pytest.fixture
def ended_run(tmp_path: Path) -> tuple[RunDirectory, Experiment]:
    """All is here now, though the events tell of a broken collection."""
    run = run_directory.create(tmp_path, "lab", "r1")
    spec = real()
    nodes = spec.topology.node_names
    for node in nodes:
        log = SegmentLog(run.segments(node), "r1", node, lambda: 1)
        log.append(AgentStart("0", "real", ()))
        log.append(AgentStop("end of run"))
        log.close()
        (run.nodes / node / "ended.json").write_text('{"reason": "end of run", "t_ns": 1, "in_order": true}')
    lost = {"ok": list(nodes[1:]), "failed": {}, "unreachable": {nodes[0]: "lost"}}
    events = [event if event["kind"] == "phase" else {**event, **lost} for event in HISTORY]
    run.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    plan = msgspec.to_builtins(deployed(spec))
    run.manifest.write_text(json.dumps({"run": "r1", "plan": plan, "clocks": {"kept": True}, "files": {}}))
    return run, spec


def test_a_run_whose_collection_broke_becomes_what_its_data_says(
    ended_run: tuple[RunDirectory, Experiment],
) -> None:
    run, spec = ended_run
    assert rejudge(run, spec, ["n1"]).verdict is Judgement.INVALID
    verdict = rejudge(run, spec, [])
    assert verdict.verdict is Judgement.VALID, verdict.reasons
    written = json.loads(run.manifest.read_text())
    assert "nodes/n1/ended.json" in written["files"] and written["clocks"] == {"kept": True}
    run.manifest.write_text(json.dumps({**written, "doubts": ["the clock of n1 was off"]}))
    assert rejudge(run, spec, []).reasons == ("the clock of n1 was off",)


def test_records_that_nobody_can_check_are_doubted(ended_run: tuple[RunDirectory, Experiment]) -> None:
    run, spec = ended_run
    run.manifest.write_text('{"run": "r1", "files": {}, "host_load": Infinity}')
    verdict = rejudge(run, spec, [])
    assert verdict.verdict is Judgement.INVALID and verdict.reasons == (NO_PLAN,)


def test_a_run_whose_orchestrator_died_stays_failed(ended_run: tuple[RunDirectory, Experiment]) -> None:
    run, spec = ended_run
    run.verdict.write_text(json.dumps(judge_dead("measure").document()))
    verdict = rejudge(run, spec, [])
    assert verdict.verdict is Judgement.FAILED and verdict.completeness["n1"].boots == 1
