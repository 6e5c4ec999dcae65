"""What replicas decided in a run, from its telemetry alone: explained, and replayed under other rules."""
