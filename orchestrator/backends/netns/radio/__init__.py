"""The air between network namespaces, in real time: one process that holds the radio's end of every node."""
