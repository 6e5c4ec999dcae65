"""What queries that look for faces need on the experimenter's machine: models, pictures, galleries."""
