"""Library operations on whole tensors, in the way of PopLibs."""
