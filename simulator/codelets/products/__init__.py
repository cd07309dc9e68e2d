"""Vertices of convolutions, products and reductions, and how their operands lie."""
