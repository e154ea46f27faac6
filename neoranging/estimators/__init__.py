"""Estimators of range and range-rate, one method per file, found by name."""
