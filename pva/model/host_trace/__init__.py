"""The objects of a host trace: processes, threads, events, series."""
