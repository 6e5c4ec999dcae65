"""Where tables can be published to is checked before anything is computed."""

import pytest

from orchestrator.analytics.publishing import Target, parse_target
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
