"""The connectionist loss: its plan, its steps, and the classes of a sample."""
