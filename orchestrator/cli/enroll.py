"""`rove enroll`: record the host keys of a topology's real nodes; afterwards only these are accepted."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.output import JsonFlag, console, print_json
from orchestrator.cli.references import TopologyFile
from orchestrator.errors import EXIT_FAILED, BadInput

if TYPE_CHECKING:
    from orchestrator.deployment.wheels import Supply
    from orchestrator.ssh.enrolment import Enrolled, Presented


def enroll(
    file: TopologyFile,
    fingerprint: Annotated[
        list[str] | None,
        typer.Option(
            "--fingerprint",
            metavar="[NODE=]SHA256:…",
            help="Accept this key and no other, without asking; may be repeated.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Trust new keys without asking; never a changed one.")
    ] = False,
    wheels: Annotated[
        bool,
        typer.Option(
            "--wheels", help="Then download packages for nodes whose Python or machine is another than here."
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    r"""Record the host keys of a topology's real nodes, of CORE's host, and of jump hosts on the way to them.

    Shows each fingerprint and asks. Compare it with what the node itself says:
    ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub. From then on, a node with another key is failed.
    Exit code: 0 all are enrolled, 1 at least one is not; with --wheels, also 1 if one cannot be deployed to.

    [bold]Examples[/]

      rove enroll topologies/lab.yaml

      rove enroll topologies/lab.yaml \
          --fingerprint n01=SHA256:GKW0cF0Ba1Ne8I7j/HjxnGnqmCvPX1qqB4rgmj0pSoA

      rove enroll topologies/lab.yaml --yes --json

      rove enroll topologies/lab.yaml --wheels
    """
    # Imported here: completion and --help must not wait for it.
    from orchestrator.planning.load import load_topology
    from orchestrator.ssh.enrolment import Statement, by_distance, enrol
    from orchestrator.ssh.host_keys import KnownHosts, known_hosts_file

    topology = load_topology(file)
    hosts = topology.machines()
    if not hosts:
        raise BadInput(
            f"{file}: this topology has neither hosts nor core: there is nobody to enrol (docs/nodes.md)"
        )
    names = [host.name for level in by_distance(hosts) for host in level]
    statement = Statement.read(fingerprint or [], names)
    known = KnownHosts(known_hosts_file(topology.name))
    confirm = _refuse if as_json else _ask
    enrolled = asyncio.run(enrol(hosts, known, statement, yes, confirm))
    if not as_json:
        _show(enrolled)
        if any(one.outcome.enrolled for one in enrolled):
            console.print(f"kept in {known.path}", markup=False, soft_wrap=True)
    supplies: dict[str, Supply] = {}
    if wheels:
        from orchestrator.deployment.wheels import supply

        trusted = {one.host.name for one in enrolled if one.outcome.enrolled}
        nodes = [host for host in hosts if host.name in trusted]
        with nullcontext() if as_json else console.status("asking nodes what they are, downloading packages"):
            supplies = asyncio.run(supply(nodes, known))
    if as_json:
        document = {"topology": topology.name, "known_hosts": str(known.path)}
        entries = {"hosts": [_entry(one) for one in enrolled]}
        supplied = {"wheels": [_supply_entry(*one) for one in supplies.items()]} if wheels else {}
        print_json(document | entries | supplied)
    else:
        _show_supplies(supplies)
    if not all(one.outcome.enrolled for one in enrolled) or any(each.unmet for each in supplies.values()):
        raise typer.Exit(EXIT_FAILED)


def _refuse(keys: "Sequence[Presented]") -> bool:
    return False


def _ask(keys: "Sequence[Presented]") -> bool:
    for presented in keys:
        host, key, recorded = presented
        console.print(f"{host.name}  {host}  {key.type}  {key.fingerprint}", markup=False, soft_wrap=True)
        if recorded is not None:
            text = f"  its key has CHANGED; it was {recorded.fingerprint}. Was this machine set up anew?"
            console.print(text, markup=False, soft_wrap=True, style="bold red")
    question = "Record this key?" if len(keys) == 1 else f"Record these {len(keys)} keys?"
    try:
        return typer.confirm(question)
    except typer.Abort:  # end of input counts as no
        console.print()
        return False


def _show(enrolled: "Sequence[Enrolled]") -> None:
    """Prints lines, not a table, which would break fingerprints on a narrow terminal."""
    names = max(len(one.host.name) for one in enrolled)
    addresses = max(len(str(one.host)) for one in enrolled)
    for one in enrolled:
        text = f"{one.host.name:<{names}}  {one.host!s:<{addresses}}  {one.outcome.value:<11}"
        shown = "  ".join(part for part in (one.key.fingerprint if one.key else "", one.reason) if part)
        console.print(f"{text}  {shown}", markup=False, soft_wrap=True)


def _entry(one: "Enrolled") -> dict[str, Any]:
    return {
        "host": one.host.name,
        "address": str(one.host),
        "outcome": one.outcome.value,
        "key_type": one.key.type if one.key else None,
        "fingerprint": one.key.fingerprint if one.key else None,
        "reason": one.reason,
    }


def _show_supplies(supplies: "Mapping[str, Supply]") -> None:
    shown: dict[str, None] = {}
    for name, supply in supplies.items():
        what = f"  {supply.facts}" if supply.facts else ""
        console.print(f"{name}{what}  {supply.unmet or 'can be deployed to'}", markup=False, soft_wrap=True)
        lines = [f"  downloaded {wheel}" for wheel in supply.downloaded]
        lines += [f"  not downloaded: {wanted}: {why}" for wanted, why in supply.failed.items()]
        for line in lines:  # similar nodes share them
            if line not in shown:
                console.print(line, markup=False, soft_wrap=True)
                shown[line] = None


def _supply_entry(name: str, supply: "Supply") -> dict[str, Any]:
    return {
        "host": name,
        "platform": str(supply.facts) if supply.facts else None,
        "downloaded": list(supply.downloaded),
        "failed": supply.failed,
        "deployable": not supply.unmet,
        "reason": supply.unmet,
    }
