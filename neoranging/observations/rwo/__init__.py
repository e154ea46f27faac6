"""OrbFit ``.rwo`` observations: reading and writing."""
