"""Triton's messages and the tensors in them, without a transport."""
