"""Builds pieces of HTML for the sections of a report."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

NOTHING = "–"


def number(spread: Mapping[str, Any] | None, factor: float, digits: int, unit: str = "") -> str:
    if not spread or spread["mean"] is None:
        return NOTHING
    text = f"{spread['mean'] * factor:.{digits}f}{unit}"
    deviation = spread["sd"]
    return text if deviation is None else f"{text} <small>± {deviation * factor:.{digits}f}</small>"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table.
    Headings and cells are markup: the caller must have escaped what comes from outside.
    """
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="card scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def bullets(items: Iterable[Any], limit: int = 12) -> str:
    texts = [str(item) for item in items]
    if len(texts) > limit:
        texts = [*texts[:limit], f"… and {len(texts) - limit} more"]
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>" if texts else ""


def definitions(entries: Mapping[str, Any]) -> str:
    pairs = (f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in entries.items())
    return f"<dl>{''.join(pairs)}</dl>"
