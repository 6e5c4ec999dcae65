"""A verdict on the console, in its colour."""

from rich.markup import escape

VERDICT_STYLES = {"valid": "green", "invalid": "yellow", "failed": "red"}
NO_VERDICT = "–"


def verdict_text(verdict: object) -> str:
    """``verdict``: what somebody's verdict.json says."""
    if verdict is None:
        return NO_VERDICT
    style = VERDICT_STYLES.get(verdict) if isinstance(verdict, str) else None
    return f"[{style}]{verdict}[/]" if style else escape(str(verdict))
