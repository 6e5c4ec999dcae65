"""The backend ``ssh``: every node is a machine of its own, such as a Raspberry Pi, a laptop or a phone.

``kind`` registers it; other rooms import nothing else.
"""
