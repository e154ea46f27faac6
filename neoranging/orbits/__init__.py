"""Orbital elements, distances between orbits, the catalogue, and n-body motion."""
