"""The page Summary: a report at a glance, and the cards of the model's run."""
