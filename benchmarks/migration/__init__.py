"""What the migration benchmarks share: random networks and operators, messages in any order, brokers in a
town."""
