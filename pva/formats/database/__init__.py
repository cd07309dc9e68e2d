"""`profile.pop`, one SQLite database: its chunks, written and read, and what is checked of it."""
