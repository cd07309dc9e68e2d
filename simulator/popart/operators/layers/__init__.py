"""Products, norms and losses, and products of quantised numbers."""
