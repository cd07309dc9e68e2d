"""Convolutions as vertices on the tiles, and what users ask of them."""
