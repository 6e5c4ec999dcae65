"""Virtual time: the same agents on a modelled radio, in one process that jumps from event to event."""
