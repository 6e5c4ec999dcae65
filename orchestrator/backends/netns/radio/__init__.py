"""The radio between network namespaces in real time: one process that holds the radio's end of every node.

The backend imports ``client`` (which starts the process) and ``config``; the rest runs in the radio process.
"""
