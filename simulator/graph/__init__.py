"""The programming model: variables, their tile mapping, compute sets, vertices, programs."""
