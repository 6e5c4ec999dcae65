"""Weights of replicas by their cost, for policies that divide a stream."""


def inverse(costs: dict[str, float], exponent: float) -> list[tuple[str, float]]:
    """Returns weights 1/cost^exponent relative to the cheapest; a replica that costs nothing gets
    everything.
    """
    cheapest = min(costs.values(), default=0.0)
    if cheapest <= 0:
        return [(to, 1.0 if cost <= 0 else 0.0) for to, cost in costs.items()]
    return [(to, (cheapest / cost) ** exponent) for to, cost in costs.items()]
