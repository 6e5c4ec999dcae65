"""Applications: the programs that an experiment runs on the nodes, each in a folder of its own.

``base`` says what an agent gives an application and what it asks of one, ``registry`` which kinds there are.
Agents import these two only.
"""
