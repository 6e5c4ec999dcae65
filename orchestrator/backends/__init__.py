"""Ways of running nodes, all behind the contract in ``base``."""
