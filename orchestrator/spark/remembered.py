"""Spares PySpark most of its questions to the JVM.

For every ``F.col`` PySpark asks the JVM anew which class ``functions`` is, for which Java looks through all
of Spark's archives, and whether it has a member ``col``. The answers do not change while a JVM lives.
"""

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember

_ASKED_FOR = (
    "functions",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
    "PythonUtils",
    "PythonSQLUtils",
)
"""Classes that PySpark names again and again."""


class _Remembering(JavaClass):  # type: ignore[misc]
    """Asks for each of its methods once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def remember_classes(view: Any) -> None:
    """Makes a view of the JVM remember what PySpark asks for."""
    for name in _ASKED_FOR:
        found = getattr(view, name)
        if isinstance(found, JavaClass):
            setattr(view, name, _Remembering(found._fqn, found._gateway_client))
