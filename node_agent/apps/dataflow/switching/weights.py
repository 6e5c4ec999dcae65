"""Weights of replicas by what they cost, for policies that divide a stream."""


def inverse(costs: dict[str, float], exponent: float) -> list[tuple[str, float]]:
    """Weights 1/cost^exponent relative to the cheapest; what costs nothing leaves nothing to the others."""
    cheapest = min(costs.values(), default=0.0)
    if cheapest <= 0:
        return [(to, 1.0 if cost <= 0 else 0.0) for to, cost in costs.items()]
    return [(to, (cheapest / cost) ** exponent) for to, cost in costs.items()]
