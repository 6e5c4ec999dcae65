"""`rove up`: a topology as a network to use by hand, with ping, iperf3 or whatever there is."""

import asyncio
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from orchestrator.cli.output import JsonFlag, console, errors, print_json, rove_command
from orchestrator.cli.references import DEFAULT_ROOT, RunsDir, TopologyFile
from orchestrator.errors import EXIT_INTERRUPTED, RoveError
from orchestrator.lifecycle.files import read_json
from orchestrator.lifecycle.run_directory import RunDirectory, new_run_id

DETACHED_UP_S = 60.0


def up(
    file: TopologyFile,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it running in the background.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="For mobility and radio.")] = 1,
    runs_dir: RunsDir = DEFAULT_ROOT,
    run_id: Annotated[
        str | None,
        typer.Option("--run-id", help="Instead of one made from date and time.", show_default=False),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Bring a topology up as a network to use by hand: namespaces on this machine, the radio between them.

    Routes follow the true links. Nodes move for an hour, then stay. Ctrl-C takes the network down; with
    --detach, [bold]rove down[/] does.

    [bold]Examples[/]

      rove up topologies/line-5.yaml

      rove up topologies/line-5.yaml --detach

      rove exec a -- ping -c 3 10.77.0.5

      rove down
    """
    # Imported here: completion and --help must not wait for it.
    from orchestrator.backends.netns.rootless import become_root
    from orchestrator.spec.load import load_topology

    topology = load_topology(file)
    run_id = run_id or new_run_id(datetime.now(UTC))
    if detach:
        document = _detached(file, seed, runs_dir, run_id, RunDirectory(runs_dir / topology.name / run_id))
        _show(document, as_json, "rove down")
        return

    become_root(rove_command())
    from orchestrator.lifecycle.interruption import Interruption
    from orchestrator.lifecycle.standing import hold

    async def hold_until_interrupted() -> bool:
        interruption = Interruption(lambda urgency: errors.print("Taking the network down."))
        with interruption.by_signals():
            return await hold(
                topology,
                seed,
                runs_dir,
                run_id,
                interruption,
                lambda document: _show(document, as_json, "Ctrl-C"),
            )

    was_up = asyncio.run(hold_until_interrupted())
    if not was_up:
        raise typer.Exit(EXIT_INTERRUPTED)


def _detached(file: Path, seed: int, runs_dir: Path, run_id: str, directory: RunDirectory) -> dict[str, Any]:
    """Start the same command in the background, and wait until it says that the network is up."""
    command = rove_command("up", str(file), "--seed", str(seed))
    with tempfile.TemporaryFile() as last_words:
        owner = subprocess.Popen(
            [*command, "--runs-dir", str(runs_dir), "--run-id", run_id],
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


def _show(document: dict[str, Any], as_json: bool, end_with: str) -> None:
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
    first, *_, last = document["nodes"]
    console.print(
        f"up  {document['run']}\n"
        f"try rove exec {first['node']} -- ping -c 3 {last['address']}\n"
        f"end {end_with}",
        markup=False,
        soft_wrap=True,
    )
