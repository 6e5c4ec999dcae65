"""From a planned run to its verdict: phases, journal, teardown."""
