import base64
import gzip
import hashlib
import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.live import replay
from orchestrator.live.inlining import CannotInline, bundled, standalone
from orchestrator.live.replay import CannotReplay, write_replay
from orchestrator.live.server.assets import Asset, page_files
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import RunWriter, known_run

pytestmark = pytest.mark.unit

INDEX = """<!doctype html>
<html lang="en">
<head>
<title>Rove</title>
<link rel="icon" href="icon.svg">
<link rel="stylesheet" href="a.css">
<script src="plain.js" defer></script>
<script src="main.js" type="module"></script>
</head>
<body>
<p>x</p>
</body>
</html>
"""


def page(**files: str) -> dict[tuple[str, ...], Asset]:
    known = {"index.html": INDEX, "icon.svg": "<svg/>", "a.css": "p {}", "plain.js": "1;", "main.js": "2;"}
    named = {name.replace("__", "/").replace("_js", ".js"): text for name, text in files.items()}
    return {
        tuple(name.split("/")): Asset(text.encode(), b"", "") for name, text in {**known, **named}.items()
    }


def nothing(stage: str, fraction: float) -> None:
    return None


def element(file: str, name: str) -> Any:
    found = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', file)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_a_run_becomes_one_file_that_has_all_of_it(tmp_path: Path) -> None:
    run = RunDirectory(known_run(tmp_path, run="k1").write())
    written = write_replay(run, tmp_path / "replay.html", nothing)
    file = written.path.read_text()
    assert written.period == 0
    assert element(file, "rove-head")["run"] == "k1"
    changes = element(file, "rove-changes")
    assert len(changes["changes"]) == written.changes > 500
    assert changes["now"] >= changes["changes"][-1][0]
    assert element(file, "rove-pictures") == {}
    assert not re.search(r'(?:src|href)="(?!data:|[?.])', file.partition("<script")[0])


def test_scripts_and_styles_are_allowed_by_their_hashes_and_nothing_else(tmp_path: Path) -> None:
    file = standalone(page_files(), "<i>title", {"rove-head": "AAAA"}).decode()
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', file)[1])  # type: ignore[index]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    scripts = re.findall(r"<script>(.*?)</script>", file, re.S)
    styles = re.findall(r"<style>(.*?)</style>", file, re.S)
    assert scripts and styles
    for text in (*scripts, *styles):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert file.index("Content-Security-Policy") < file.index("<style>")
    assert "<title>&lt;i&gt;title</title>" in file


def test_hostile_names_stay_data(tmp_path: Path) -> None:
    writer = known_run(tmp_path, experiment="</title><script>alert(1)</script>".replace("/", "_"), run="k1")
    writer.fault(20, "</script><script>alert(2)</script>", "n1")
    file = write_replay(RunDirectory(writer.write()), tmp_path / "r.html", nothing).path.read_text()
    assert "alert(" not in re.sub(r"<title>.*</title>", "", file)
    assert "<title>&lt;_title&gt;&lt;script&gt;alert(1)" in file


def test_a_long_run_is_thinned_until_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDirectory(known_run(tmp_path, run="k1").write())
    whole = write_replay(run, tmp_path / "a.html", nothing)
    monkeypatch.setattr(replay, "MOST_BYTES", whole.size - 1)
    thinned = write_replay(run, tmp_path / "b.html", nothing)
    assert thinned.period > 0
    assert thinned.changes < whole.changes
    monkeypatch.setattr(replay, "MOST_BYTES", 1000)
    with pytest.raises(CannotReplay, match="too long for one file"):
        write_replay(run, tmp_path / "c.html", nothing)


def test_a_run_without_records_cannot_be_played(tmp_path: Path) -> None:
    run = RunDirectory(RunWriter(tmp_path, "empty", "e1").write())
    with pytest.raises(CannotReplay, match="no records"):
        write_replay(run, tmp_path / "a.html", nothing)


def test_modules_become_functions_in_the_order_of_their_needs() -> None:
    script = bundled(
        page(
            main_js='import { one, two as zwei } from "./sub/x.js";\n'
            'import {\n  three,\n} from "./y.js";\nrun(one, zwei, three);',
            sub__x_js='import { three } from "../y.js";\nexport const one = 1;\nexport function two() {}\n',
            y_js="export let three = 3;\nexport async function four() {}\nexport class Five {}\n",
        ),
        "main.js",
    )
    assert (
        script.index('$modules["y.js"] =') < script.index('$modules["sub/x.js"] =') < script.index("run(one")
    )
    assert 'const { one, two: zwei } = $modules["sub/x.js"];' in script
    assert "get four() { return four; }, get Five() { return Five; }" in script
    assert "export" not in script and "import" not in script


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"main_js": 'import x from "./y.js";', "y_js": ""}, "not understood: import x"),
        ({"main_js": "export default 3;"}, "not understood: export default"),
        ({"main_js": 'import { a } from "./y.js";'}, "the page has no y.js"),
        ({"main_js": 'import { a } from "../y.js";'}, "from outside"),
        (
            {
                "main_js": 'import { a } from "./y.js";',
                "y_js": 'import { b } from "./main.js";\nexport const a = 1;',
            },
            "in a circle",
        ),
    ],
)
def test_what_is_not_understood_is_an_error(files: dict[str, str], complaint: str) -> None:
    with pytest.raises(CannotInline, match=complaint):
        standalone(page(**files), "t", {})


def test_scripts_cannot_end_their_element() -> None:
    file = standalone(page(plain_js='a = "</SCRIPT><!--";'), "t", {}).decode()
    assert '<\\/SCRIPT><\\!--"' in file
    with pytest.raises(CannotInline, match="base64"):
        standalone(page(), "t", {"x": "</script>"})
