"""Which downstream replica to send to: pure decisions over a cost graph."""
