"""Runs a function on executors and takes its results back as plain bytes, which are not unpickled here."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


def collect_bytes(
    spark: "SparkSession", items: Sequence[T], function: Callable[[Iterable[T]], Iterator[bytes]]
) -> list[bytes]:
    """Calls ``function``, of a module that executors can import, with each item in a task of its own."""
    from pyspark.serializers import NoOpSerializer

    result: Any = spark.sparkContext.parallelize(items, len(items)).mapPartitions(function)
    result._jrdd_deserializer = NoOpSerializer()
    return [bytes(piece) for piece in result.collect()]
