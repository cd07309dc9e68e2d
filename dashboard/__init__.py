"""The web dashboard: a shell, one module a page, pure figures, timelines on a canvas."""
