"""The answers of olsrd's plug-ins jsoninfo, txtinfo and netjson: whatever reads olsrd reads our daemon."""
