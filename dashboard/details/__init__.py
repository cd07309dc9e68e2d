"""The drawer beside a page: what it says of an object, and which row or finding opens it."""
