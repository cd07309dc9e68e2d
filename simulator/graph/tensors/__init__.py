"""Variables in an arena, and tensors as views of intervals of their elements."""
