"""Slices at offsets that are known or not, with a plan or without, and their updates."""
