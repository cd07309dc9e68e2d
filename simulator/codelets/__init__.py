"""The library's vertex types as tables: what they compute, what they cost, and the source of both.

Formulas restate the public PopLibs estimators. "supervisor" costs are of the whole tile, worker
costs of one thread.
"""
