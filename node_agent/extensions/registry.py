"""The registry of one kind of extension: Rove's own, those of installed packages, those of users' files.

    POLICIES: Registry[Policy] = Registry(
        "switching policy", "rove.switching_policies", checked_policy,
        {"shortest_path": "node_agent.apps.dataflow.switching.policies.shortest_path:POLICY"},
    )
    POLICIES["shortest_path"]
    POLICIES["/home/me/my_policy.py:decide"]

A package offers its own with an entry point in the registry's group: ``mine = "my_package.policies:decide"``.
An extension is imported when it is first used.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Generic, TypeVar

from node_agent.extensions.errors import ExtensionError, check_version, explain
from node_agent.extensions.files import is_reference, load_attribute, split_reference
from node_agent.extensions.inherited import hand_on, inherited, take_back

T = TypeVar("T")
Check = Callable[[str, object], T]
"""Turns what an extension defines into what is used. Raises ExtensionError if it is of another type."""


class Registry(Generic[T]):
    """``what``: what it holds, in words. ``group``: of the entry points. ``builtin``: name →
    ``module:attribute``.

    Used like a Mapping: names, ``in``, ``[]``. Raises ExtensionError for an entry that cannot be used.
    """

    def __init__(self, what: str, group: str, check: Check[T], builtin: Mapping[str, str]) -> None:
        self.what = what
        self.group = group
        self._check = check
        self._builtin = dict(builtin)
        self._registered: dict[str, T] = {}
        self._loaded: dict[str, T] = {}
        self._installed: dict[str, list[EntryPoint]] | None = None

    def names(self) -> tuple[str, ...]:
        """Returns Rove's own names first, then those of others in alphabetical order."""
        others = {*self._offers(), *inherited(self.group)}
        return tuple(dict.fromkeys((*self._builtin, *self._registered, *sorted(others))))

    def register(self, name: str, value: object) -> None:
        """Adds ``value`` in this process and in those that it starts.

        Raises ExtensionError if the name is taken, or if the value does not fit.
        """
        if name in self._builtin or name in self._registered or name in self._offers():
            raise ExtensionError(f"there is a {self.what} {name!r} already: choose another name")
        self._registered[name] = self._check(name, value)
        hand_on(self.group, name, value)

    def unregister(self, name: str) -> None:
        """Undoes ``register``."""
        del self._registered[name]
        take_back(self.group, name)

    def refresh(self) -> None:
        """Checks again which packages are installed."""
        self._installed = None
        self._loaded.clear()

    def is_builtin(self, name: str) -> bool:
        """Whether ``name`` is one of Rove's own."""
        return name in self._builtin

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> T:
        """Returns what is called ``name``, or what the reference ``file.py:attribute`` refers to."""
        if name in self._loaded:
            return self._loaded[name]
        if is_reference(name):
            path, attribute = split_reference(name)
            return self._check(f"{path.name}:{attribute}", load_attribute(path, attribute))
        offers = self._offers().get(name, [])
        sources = [_origin(offer) for offer in offers] + ["Rove itself"] * (name in self._builtin)
        if len(sources) > 1:
            raise ExtensionError(
                f"there are several {self.what} {name!r}: of {' and of '.join(sources)}; rename or remove one"
            )
        if name in self._registered:
            return self._registered[name]
        if not offers and name in inherited(self.group):
            found = load_attribute(*split_reference(inherited(self.group)[name]))
            self._loaded[name] = self._check(name, found)
        else:
            self._loaded[name] = self._check(name, self._import(name, offers))
        return self._loaded[name]

    def source_file(self, name: str) -> Path | None:
        """Returns the user's file that a reference names; None for a registered name."""
        return split_reference(name)[0] if is_reference(name) else None

    def installed(self, name: str) -> EntryPoint | None:
        """Returns the entry point of another package that offers ``name``; None if no other package does."""
        offers = self._offers().get(name)
        return offers[0] if offers else None

    def unknown(self, name: str) -> str:
        """Returns why ``name`` means nothing, with the names that exist."""
        close = get_close_matches(name, self.names(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(self.names())}"
        return f"there is no {self.what} {name!r}; {hint}"

    def _import(self, name: str, offers: list[EntryPoint]) -> object:
        if name in self._builtin:
            module, _, attribute = self._builtin[name].partition(":")
            built_in: object = getattr(importlib.import_module(module), attribute)
            return built_in
        if not offers:
            raise ExtensionError(self.unknown(name))
        offer = offers[0]
        where = f"the {self.what} {name!r} of {_origin(offer)}"
        try:
            module_found = importlib.import_module(offer.module)
            check_version(module_found, where)
            value: object = offer.load()
        except ExtensionError:
            raise
        except (Exception, SystemExit) as error:
            raise ExtensionError(f"{where} cannot be loaded: {explain(error)}") from error
        return value

    def _offers(self) -> dict[str, list[EntryPoint]]:
        if self._installed is None:
            self._installed = {}
            for entry in entry_points(group=self.group):
                self._installed.setdefault(entry.name, []).append(entry)
        return self._installed


def _origin(entry: EntryPoint) -> str:
    package = entry.dist.name if entry.dist is not None else "an installed package"
    return f"{package} ({entry.value})"
