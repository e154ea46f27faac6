"""Labelled sets of very short arcs: formed, told the truth, split, scaled, stored as Parquet."""
