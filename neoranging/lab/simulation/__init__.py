"""The twin: a simulated set of arcs with the statistics of NEODyS-2."""
