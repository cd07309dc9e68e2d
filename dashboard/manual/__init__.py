"""The documentation that the dashboard shows: chapters, their sections, and the search in them."""
