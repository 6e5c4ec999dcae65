"""Reference figures and scenarios of the radio's benchmarks."""
