"""Vertices of neural networks: non-linearities, pooling, losses, classes."""
