"""Other processes that run a part of a graph's replicas, and what they exchange."""
