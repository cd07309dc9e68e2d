"""Types and shapes of what nodes make, and faults of nodes in PopART's words."""
