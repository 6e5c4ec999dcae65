"""Applications: the programs that an experiment runs on the nodes, each in a folder of its own.

``base`` defines what an agent gives an application and expects of it; ``registry`` lists the kinds. Agents
import only these two; the orchestrator also imports ``records``.
"""
