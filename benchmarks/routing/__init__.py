"""What ``benchmarks.routing_gap`` injects into simulations: routing with handicaps."""
