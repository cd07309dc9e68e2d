"""The parts of a session: options, files, reports, weights, generators of random numbers."""
