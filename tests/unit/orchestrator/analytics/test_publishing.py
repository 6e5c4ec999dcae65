"""Where tables can be published to is checked before anything is computed."""

from pathlib import Path

import pytest

from orchestrator.analytics.publishing import Target, parse_target, require_elsewhere
from orchestrator.errors import BadInput


@pytest.mark.parametrize(
    "url", ["hdfs://head:8020/rove", "s3a://bucket", "file:///shared/rove", "viewfs://lab/t"]
)
def test_places(url: str) -> None:
    assert parse_target(url + "/") == Target(url, url.partition(":")[0])


@pytest.mark.parametrize("url", ["", "/shared", "s3a:bucket", "file://", "hdfs://head/a\nb", "x y://z"])
def test_what_is_no_place(url: str) -> None:
    with pytest.raises(BadInput, match="is no place for tables: write hdfs://host:8020/rove"):
        parse_target(url)


def test_tables_are_not_published_among_the_runs(tmp_path: Path) -> None:
    runs = [tmp_path / "runs" / "known" / name for name in ("one", "two")]
    for place in (tmp_path / "elsewhere", tmp_path / "runs2"):
        require_elsewhere(parse_target(f"file://{place}"), runs)
    require_elsewhere(parse_target(f"hdfs://head{runs[0]}"), runs)
    for place in (tmp_path / "runs", tmp_path / "runs" / ".tables", runs[1]):
        with pytest.raises(
            BadInput, match=r"is inside the runs' directory .*/runs: publish tables to another"
        ):
            require_elsewhere(parse_target(f"file://{place}"), runs)
