"""Real nodes over SSH, whatever is done with them: connections, commands, programs, files, host keys."""
