from node_agent.query import Query, count, operator


@operator
def mean(frames: list[bytes], other: list[bytes]) -> bytes:
    return frames[0]


def build(rate: float = 10.0) -> Query:
    frames = Query("broken").source("synthetic_source", name="camera", rate=rate, size=5)
    return frames.window(count(5), mean).sink(name="screen")


def fails(rate: float = 10.0) -> Query:
    raise RuntimeError(f"no such rate: {rate}")


def nothing() -> int:
    return 5
