"""Real models, run as a user runs them: what is imported, fits, how fast, and how right."""
