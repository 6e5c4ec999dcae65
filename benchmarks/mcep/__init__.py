"""Random worlds for mobile complex event processing, a network in which its machines run, and an oracle."""
