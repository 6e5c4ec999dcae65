"""Prints and writes when links are up, for `rove plan` of a topology with contacts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.cli.output import console
from orchestrator.errors import BadInput

if TYPE_CHECKING:
    from orchestrator.contacts.plan import ContactPlan
    from orchestrator.planning.sweep import Cell

_MOST_LINKS = 40
_LEAST_WIDTH = 20
_FACTS_WIDTH = 62


def contacts_of(cell: "Cell") -> "ContactPlan | None":
    """Returns the cell's contact plan; None if its topology has none."""
    experiment = cell.experiment
    return experiment.topology.contact_plan(experiment.seed, experiment.warmup + experiment.duration)


def show_contacts(plan: "ContactPlan") -> None:
    from orchestrator.contacts.chart import ALWAYS, axis, chart_rows

    rows = [row for row in chart_rows(plan, 1) if row.facts != ALWAYS]
    always = len(plan.links) - len(rows)
    if not rows:
        console.print(f"\n[bold]Contacts[/] all {always} links are always up")
        return
    console.print(f"\n[bold]Contacts[/] in {plan.until:g} s: who meets whom when")
    names = max(len(row.link) for row in rows)
    room = console.width - names - 2
    beside = room - _FACTS_WIDTH - 2 >= _LEAST_WIDTH
    width = max(room - _FACTS_WIDTH - 2 if beside else room, _LEAST_WIDTH)
    console.print(f"{'':{names}}  {axis(plan.until, width)}", highlight=False, markup=False)
    drawn_rows = [row for row in chart_rows(plan, width) if row.facts != ALWAYS]
    for link, drawn, facts in drawn_rows[:_MOST_LINKS]:
        line = f"{link:{names}}  {drawn}" + (f"  {facts}" if beside else f"\n{'':{names}}  {facts}")
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if len(rows) > _MOST_LINKS:
        more = len(rows) - _MOST_LINKS
        console.print(f"… and {more} more: --json lists them all, --contacts FILE.svg draws them")
    if always:
        console.print(f"and {always} links that are always up")


def contacts_document(plan: "ContactPlan") -> dict[str, Any]:
    return {
        "until_s": plan.until,
        "links": [
            {
                "from": link.a,
                "to": link.b,
                "one_way": link.one_way,
                "rate_bps": link.rate,
                "latency_s": link.latency,
                "cost": link.cost,
                "edp_s": round(link.edp, 3),
                "eap_s": round(link.eap, 3),
                "longest_down_s": round(link.longest_down(plan.until), 3),
                "contacts": [list(contact) for contact in link.contacts],
            }
            for link in plan.links
        ],
    }


def write_contacts(file: Path, cell: "Cell") -> None:
    """Writes the plan, by the name: .csv as a trace file, .svg as a drawing."""
    from orchestrator.contacts.chart import to_csv, to_svg

    plan = contacts_of(cell)
    if plan is None:
        text = "--contacts: links follow from distance here; only radio: {model: contacts} has a plan of them"
        raise BadInput(text)
    if file.suffix not in (".csv", ".svg"):
        raise BadInput(f"--contacts {file}: the name must end in .csv or .svg")
    drawn = to_csv(plan) if file.suffix == ".csv" else to_svg(plan, f"{cell.experiment.name}: contacts")
    try:
        file.write_text(drawn)
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from error
