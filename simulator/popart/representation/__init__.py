"""A model's nodes in order, with all types and shapes known, and what simplifies them."""
