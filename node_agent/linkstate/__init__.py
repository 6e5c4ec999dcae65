"""Where a node's knowledge of the network's costs comes from."""
