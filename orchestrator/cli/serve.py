"""`rove serve`: a web page on which runs, sweeps and real nodes can be watched."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.opening import Opener
from orchestrator.cli.output import JsonFlag, console, errors, json_text
from orchestrator.cli.references import DEFAULT_ROOT, RUN_HELP, RunsDir, complete_run
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import resolve

if TYPE_CHECKING:
    from orchestrator.live.fleet import Fleet
    from orchestrator.live.server.process import Address

_TOPOLOGY = (".yaml", ".yml")
_BESIDE_A_RUN = 5
"""The page yields to the run that it shows: its niceness."""


def serve(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|TOPOLOGY",
            help=f"{RUN_HELP} Or a topology file with real nodes. Without: all runs.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ] = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 8470,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token on loopback as well; elsewhere always.")
    ] = False,
    control: Annotated[
        bool, typer.Option("--control", help="Let the page stop runs and take them down; asks for a token.")
    ] = False,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Start Prometheus beside it, with these runs as targets.")
    ] = False,
    prometheus_port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="Where Prometheus listens; if not given, 9090, or any that is free."
        ),
    ] = None,
    sd: Annotated[
        Path | None,
        typer.Option(
            "--sd", help="A file of targets to keep, for Prometheus' file_sd_configs.", dir_okay=False
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    while_input: Annotated[bool, typer.Option("--while-input", hidden=True)] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show runs, sweeps and real nodes on a web page, live and afterwards.

    It shows what the runs' directories have, and changes nothing of a run unless --control is given. It ends
    at Ctrl-C. On another address than loopback every request needs a token: it is part of the address that is
    printed once, behind the #, which browsers send to nobody. ROVE_SERVE_TOKEN sets one of your own. With
    --json, the first line says where it listens.

    Prometheus finds the runs that go on at /sd. With --prometheus one is started here, on loopback; where it
    is not installed, the lines for the prometheus.yml of another one are printed. Where the page needs a
    token, that Prometheus needs a password: what is printed says in which file it is.

    [bold]Examples[/]

      rove serve --open

      rove serve latest

      rove serve topologies/pi-lab.yaml

      rove serve --host 0.0.0.0 --port 9000

      rove serve --prometheus
    """
    # Imported here: completion and --help must not wait for them.
    from orchestrator.live.metrics import metrics
    from orchestrator.live.prometheus.beside import Beside
    from orchestrator.live.server import process

    metrics()  # an application that declares a wrong one is named here, and not at the first scrape
    files = [each for each in what or () if each.endswith(_TOPOLOGY)]
    runs = [resolve(each, runs_dir) for each in what or () if each not in files]
    if len(files) > 1:
        raise BadInput("one topology at a time: start another rove serve with another --port")
    fleet = _fleet(Path(files[0])) if files else None
    beside = Beside(
        runs_dir,
        lambda line: errors.print(line, markup=False, soft_wrap=True),
        sd,
        prometheus,
        prometheus_port,
    )
    settings = process.Settings(
        root=None if runs else runs_dir,
        runs=runs,
        fleet=None if fleet is None else lambda: fleet,
        host=host,
        port=port,
        token=os.environ.get(process.TOKEN_VARIABLE),
        wants_token=token,
        control=control,
        while_input=while_input,
        metrics=beside.door,
        beside=beside.running,
    )
    if while_input:
        os.nice(_BESIDE_A_RUN)

    def listens(address: "Address") -> None:
        if as_json:
            document = {"url": address.url, "address": address.base, "port": address.port, "pid": os.getpid()}
            document |= {"prometheus": beside.url} if beside.url is not None else {}
            if beside.password_file is not None:
                document |= {"prometheus_password_file": str(beside.password_file)}
            sys.stdout.write(json_text(document) + "\n")
            sys.stdout.flush()
        else:
            shown = ", ".join([*files, *(run.id for run in runs)]) or str(runs_dir)
            console.print(f"{shown}: {address.url}", markup=False, soft_wrap=True)
            if address.elsewhere is not None:
                console.print(f"from elsewhere: {address.elsewhere}", markup=False, soft_wrap=True)
            errors.print("Ctrl-C ends it.", markup=False)
        if show:
            opener.open(address.url)

    with Opener() as opener:
        process.run(settings, listens)


def _fleet(file: Path) -> "Fleet":
    from orchestrator.live.fleet import Fleet
    from orchestrator.planning.load import load_topology
    from orchestrator.ssh.host_keys import known_hosts_file

    topology = load_topology(file)
    nodes = topology.real_nodes()
    if not nodes:
        raise BadInput(f"{file}: this topology has no hosts: there are no real nodes to show (docs/nodes.md)")
    return Fleet(topology.name, nodes, known_hosts_file(topology.name))
