"""How a pooling is cut into parts, transformed, placed and done by vertices."""
