"""Reductions and cumulative sums: plans, stages, regions and vertices."""
