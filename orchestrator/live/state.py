"""The latest of everything: a fold of changes, for displays that show the present only."""

from collections.abc import Iterable
from typing import Any

from orchestrator.runs.timeline import Change


class State:
    """By application, channel and key, the last change that was taken and did not end it."""

    def __init__(self) -> None:
        self.now = 0.0
        self._known: dict[tuple[str, str], dict[str, Change]] = {}

    def take(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self.now = max(self.now, change.t)
            keys = self._known.setdefault((change.app, change.channel), {})
            if change.value is None:
                keys.pop(change.key, None)
            else:
                keys[change.key] = change

    def of(self, channel: str, app: str = "") -> dict[str, Any]:
        """Returns the values of a channel by key."""
        return {key: change.value for key, change in self._known.get((app, channel), {}).items()}

    def last(self, channel: str, key: str = "", app: str = "") -> Change | None:
        return self._known.get((app, channel), {}).get(key)

    def changes(self, channel: str, app: str = "") -> list[Change]:
        return list(self._known.get((app, channel), {}).values())

    def document(self) -> dict[str, Any]:
        """Returns everything as plain JSON: by application, channel and key the time and the value."""
        found: dict[str, Any] = {}
        for (app, channel), keys in sorted(self._known.items()):
            if keys:
                values = {key: {"t": c.t, "value": c.value} for key, c in sorted(keys.items())}
                found.setdefault(app, {})[channel] = values
        return found
