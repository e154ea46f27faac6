"""MPC 80-column observations: reading and writing."""
