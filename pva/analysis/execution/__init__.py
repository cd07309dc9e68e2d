"""Analyses of the execution: where cycles go, how work is spread, what is moved."""
