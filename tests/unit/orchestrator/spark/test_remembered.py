"""What PySpark asks the JVM again and again is asked once."""

from typing import Any

from py4j import protocol
from py4j.java_gateway import JVMView

from orchestrator.spark.remembered import remember_classes

FUNCTIONS = "org.apache.spark.sql.functions"


class Properties:
    pool = None


class Jvm:
    """Answers as Py4J's other side does: every name is a class, every member a method."""

    gateway_property = Properties()
    converters = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def send_command(self, command: str) -> str:
        self.asked.append(command)
        wanted = command.split("\n")
        if wanted[1] == protocol.REFL_GET_MEMBER_SUB_COMMAND_NAME.strip():
            return f"{protocol.SUCCESS}{protocol.METHOD_TYPE}"
        return f"{protocol.SUCCESS_CLASS}{wanted[2]}"


def test_a_class_and_its_methods_are_asked_for_once() -> None:
    jvm = Jvm()
    view: Any = JVMView(jvm, "test", id="j1")
    remember_classes(view)
    before = len(jvm.asked)
    methods = [getattr(getattr(view, FUNCTIONS), "col") for _ in range(3)]  # noqa: B009
    assert len(jvm.asked) == before + 1
    assert methods[0] is methods[1] is methods[2]
    assert getattr(view, "another") is not getattr(view, "another")  # noqa: B009
