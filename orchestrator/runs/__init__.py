"""What a run is on disk and in time: directory, files, journal, events, manifest, phases, verdict.

Import ``run_directory.RunDirectory`` for a run's files, ``journal.Journal`` for what it created,
``backend.Backend`` for the contract of backends, ``verdict`` to judge a run. It imports no other room.
"""
