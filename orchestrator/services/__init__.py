"""Programs that a run starts on its nodes besides the agents: routing daemons, each one small class."""
