"""The page Operations: what each operation costs, and its details."""
