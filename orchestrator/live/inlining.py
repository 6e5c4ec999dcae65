"""Puts the page's files into one: modules become functions of one script, styles and icons go inside.

It understands the JavaScript that the page is written in, not all there is: ``import { a, b as c } from
"./x.js"`` and ``export`` before a declaration, each at the beginning of a line. Anything else is an error.
"""

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from orchestrator.errors import RoveError
from orchestrator.live.server.assets import INDEX, Asset

Page = Mapping[tuple[str, ...], Asset]

_IMPORT = re.compile(
    r'^import\s*\{(?P<names>[^}]*)\}\s*from\s*"(?P<path>\./[^"]+|\.\./[^"]+)";?[ \t]*$', re.M
)
_EXPORT = re.compile(
    r"^export\s+(?P<what>(?:async\s+)?function\s*\*?|class|const|let)\s+(?P<name>[A-Za-z_$][\w$]*)", re.M
)
_LEFT_OVER = re.compile(r"^\s*(?:import|export)\b(?!\()", re.M)
_LINK = re.compile(r'[ \t]*<link rel="(?P<rel>stylesheet|icon)" href="(?P<path>[^"]+)">\n?')
_SCRIPT = re.compile(r'[ \t]*<script src="(?P<path>[^"]+)"(?P<kind>[^>]*)></script>\n?')
_TITLE = re.compile(r"<title>[^<]*</title>")


class CannotInline(RoveError):
    """The page has something that this module does not understand."""


def standalone(page: Page, title: str, data: Mapping[str, str]) -> bytes:
    """Returns the page as one file. ``data``: by the id of an element, its text, in base64.

    The file's policy allows the scripts and styles that are in it by their hashes, and nothing else.
    """
    index = page[(INDEX,)].data.decode() if (INDEX,) in page else ""
    if "</head>" not in index or "</body>" not in index:
        raise CannotInline("this installation has no page")
    scripts = [_script(page, each["path"], "module" in each["kind"]) for each in _SCRIPT.finditer(index)]
    links = [(each["rel"], each["path"]) for each in _LINK.finditer(index)]
    styles = [_text(page, path) for rel, path in links if rel == "stylesheet"]
    icons = [_icon(page, path) for rel, path in links if rel == "icon"]
    index = _SCRIPT.sub("", _LINK.sub("", index))
    index = _TITLE.sub(lambda _: f"<title>{html.escape(title)}</title>", index, count=1)
    if any("</style" in style.lower() for style in styles):
        raise CannotInline("a style ends its own element")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(scripts)}",
            f"style-src {_hashes(styles)}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    head = "".join(
        (
            f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n',
            '<meta name="referrer" content="no-referrer">\n',
            *icons,
            *(f"<style>{style}</style>\n" for style in styles),
        )
    )
    body = "".join(
        (
            *(
                f'<script type="text/plain" id="{name}">{_safe(text)}</script>\n'
                for name, text in data.items()
            ),
            *(f"<script>{script}</script>\n" for script in scripts),
        )
    )
    # The policy comes first: it holds for what follows it.
    begin = index.index("<head>") + len("<head>\n") if "<head>\n" in index else index.index("<head>") + 6
    index = index[:begin] + head + index[begin:]
    end = index.rindex("</body>")
    return (index[:end] + body + index[end:]).encode()


def bundled(page: Page, entry: str) -> str:
    """Returns a script that does what the module ``entry`` does. Modules may not import in a circle."""
    order: list[str] = []
    _visit(page, entry, order, ())
    modules = "\n".join(_module(page, path) for path in order)
    return f'"use strict";\nconst $modules = {{}};\n{modules}\n'


def _visit(page: Page, path: str, order: list[str], above: tuple[str, ...]) -> None:
    if path in above:
        raise CannotInline(f"modules import in a circle: {' > '.join((*above, path))}")
    if path in order:
        return
    for each in _IMPORT.finditer(_text(page, path)):
        _visit(page, _beside(path, each["path"]), order, (*above, path))
    order.append(path)


def _module(page: Page, path: str) -> str:
    source = _text(page, path)
    exported = [each["name"] for each in _EXPORT.finditer(source)]

    def imported(found: re.Match[str]) -> str:
        names = [name.strip() for name in found["names"].split(",") if name.strip()]
        taken = ", ".join(name.replace(" as ", ": ") for name in names)
        return f'const {{ {taken} }} = $modules["{_beside(path, found["path"])}"];'

    code = _EXPORT.sub(lambda found: f"{found['what']} {found['name']}", _IMPORT.sub(imported, source))
    if left := _LEFT_OVER.search(code):
        line = code[left.start() :].lstrip().splitlines()[0]
        raise CannotInline(f"{path}: not understood: {line[:80]}")
    given = ", ".join(f"get {name}() {{ return {name}; }}" for name in exported)
    return f'(() => {{\n{code}\n$modules["{path}"] = {{ {given} }};\n}})();'


def _script(page: Page, path: str, module: bool) -> str:
    code = bundled(page, path) if module else _text(page, path)
    # Neither may stand in a script of a page; within strings and comments they mean the same so written.
    return re.sub(r"</(script)", r"<\\/\1", code, flags=re.I).replace("<!--", r"<\!--")


def _icon(page: Page, path: str) -> str:
    data = base64.b64encode(_asset(page, path).data).decode()
    return f'<link rel="icon" href="data:image/svg+xml;base64,{data}">\n'


def _safe(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9+/=]*", text):
        raise CannotInline("data must be base64")
    return text


def _hashes(texts: list[str]) -> str:
    sums = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{each}'" for each in sums)


def _beside(path: str, other: str) -> str:
    """The path of ``other`` as it is written in the file ``path``."""
    parts = list(PurePosixPath(path).parent.parts)
    for part in PurePosixPath(other).parts:
        if part == "..":
            if not parts:
                raise CannotInline(f"{path} imports from outside: {other}")
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _text(page: Page, path: str) -> str:
    return _asset(page, path).data.decode()


def _asset(page: Page, path: str) -> Asset:
    asset = page.get(tuple(path.split("/")))
    if asset is None:
        raise CannotInline(f"the page has no {path}")
    return asset
