"""One Spark session for all tests here: to start it takes longer than to run them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from orchestrator.analytics.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session() as session:
        yield session
