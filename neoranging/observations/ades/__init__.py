"""ADES observations, PSV and XML: reading and writing."""
