"""Answers queries like olsrd's plug-ins jsoninfo, txtinfo and netjson, so that tools for olsrd work.

``server.InfoServer`` is started by ``olsr.process``; nothing else is imported from here.
"""
