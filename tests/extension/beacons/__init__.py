"""An application of somebody else: nodes greet each other, and count who was heard."""
