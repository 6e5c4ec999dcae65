"""The backend ``core``: nodes and air of CORE, driven on its host by a program that we put there."""
