"""Analyses of waits: who is waited for, and the critical path of a run."""
