"""`rove up`: a topology as a network to use by hand, with ping, iperf3 or whatever there is."""

import asyncio
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from orchestrator.cli.output import JsonFlag, console, errors, print_json, rove_command
from orchestrator.cli.references import DEFAULT_ROOT, RunsDir, TopologyFile
from orchestrator.errors import EXIT_INTERRUPTED, BadInput, RoveError
from orchestrator.runs.files import read_json
from orchestrator.runs.run_directory import RunDirectory, new_run_id

if TYPE_CHECKING:
    from orchestrator.spec.routing import RoutingSection

DETACHED_UP_S = 60.0


def up(
    file: TopologyFile,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it running in the background.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="For mobility and radio.")] = 1,
    routing: Annotated[
        str,
        typer.Option(
            "--routing",
            help="Who finds the routes: ground_truth, or a protocol, such as olsr.",
            autocompletion=lambda: _protocols(),
        ),
    ] = "ground_truth",
    runs_dir: RunsDir = DEFAULT_ROOT,
    run_id: Annotated[
        str | None,
        typer.Option("--run-id", help="Instead of one made from date and time.", show_default=False),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Bring a topology up as a network to use by hand: namespaces on this machine, the radio between them.

    Routes follow the true links, or are found by a routing daemon on every node (--routing). Nodes move for
    an hour, then stay. Ctrl-C takes the network down; with --detach, [bold]rove down[/] does.

    [bold]Examples[/]

      rove up topologies/line-5.yaml

      rove up topologies/line-5.yaml --detach

      rove up topologies/line-5.yaml --routing olsr

      rove exec a -- ping -c 3 10.77.0.5

      rove down
    """
    # Imported here: completion and --help must not wait for it.
    from orchestrator.backends.netns.rootless import become_root
    from orchestrator.planning.load import load_topology

    topology = load_topology(file)
    protocol = _protocol(routing)
    run_id = run_id or new_run_id(datetime.now(UTC))
    if detach:
        options = ["--seed", str(seed), "--routing", routing, "--runs-dir", str(runs_dir), "--run-id", run_id]
        document = _detached(file, options, run_id, RunDirectory(runs_dir / topology.name / run_id))
        _show(document, as_json, "rove down", protocol)
        return

    become_root(rove_command())
    from orchestrator.lifecycle.interruption import Interruption
    from orchestrator.lifecycle.standing_network import hold
    from orchestrator.live.door import open_network_door

    async def hold_until_interrupted() -> bool:
        interruption = Interruption(lambda urgency: errors.print("Taking the network down."))
        with interruption.by_signals():
            return await hold(
                topology,
                seed,
                runs_dir,
                run_id,
                interruption,
                lambda document: _show(document, as_json, "Ctrl-C", protocol),
                protocol,
                open_network_door,
            )

    was_up = asyncio.run(hold_until_interrupted())
    if not was_up:
        raise typer.Exit(EXIT_INTERRUPTED)


def _protocols() -> list[str]:
    from orchestrator.spec.routing import ROUTING_SERVICES

    return list(ROUTING_SERVICES)


def _protocol(name: str) -> "RoutingSection":
    """With its defaults."""
    from orchestrator.backends.netns.kind import NETNS
    from orchestrator.services.registry import service_kind
    from orchestrator.spec.problems import Unusable
    from orchestrator.spec.routing import read_protocol

    try:
        protocol = read_protocol(name)
    except Unusable as error:
        (finding,) = error.findings
        hint = f"\n{finding.hint}" if finding.hint else ""
        raise BadInput(f"--routing {finding.message}{hint}") from error
    if not service_kind(protocol.protocol).runs_on(NETNS.traits):
        raise BadInput(f"--routing {name}: it does not run on real kernels")
    return protocol


def _detached(file: Path, options: list[str], run_id: str, directory: RunDirectory) -> dict[str, Any]:
    """Start the same command in the background, and wait until it says that the network is up."""
    with tempfile.TemporaryFile() as last_words:
        owner = subprocess.Popen(
            rove_command("up", str(file), *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=last_words,
            start_new_session=True,
        )
        deadline = time.monotonic() + DETACHED_UP_S
        document: dict[str, Any]
        try:
            while (document := read_json(directory.network) or {}).get("owner") != owner.pid:
                if owner.poll() is not None:
                    last_words.seek(0)
                    failure = RoveError(last_words.read().decode(errors="replace").strip())
                    failure.exit_code = owner.returncode
                    raise failure
                if time.monotonic() > deadline:
                    raise RoveError(f"the network was not up after {DETACHED_UP_S:g} s: rove events {run_id}")
                time.sleep(0.05)
        except BaseException:
            owner.terminate()
            raise
    return document


def _show(document: dict[str, Any], as_json: bool, end_with: str, routing: "RoutingSection") -> None:
    if as_json:
        print_json(document)
        sys.stdout.flush()
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("node", "address", "control"):
        table.add_column(heading)
    for node in document["nodes"]:
        table.add_row(node["node"], node["address"], node["control"])
    console.print(table)
    first, last = document["nodes"][0], document["nodes"][-1]
    console.print(
        f"up  {document['run']}{_until_routes(routing)}\n"
        f"try rove exec {first['node']} -- ping -c 3 {last['address']}\n"
        f"end {end_with}",
        markup=False,
        soft_wrap=True,
    )


def _until_routes(routing: "RoutingSection") -> str:
    from orchestrator.services.registry import routing_service

    expectation = routing_service(routing).once_up()
    return f"; {expectation}" if expectation else ""
