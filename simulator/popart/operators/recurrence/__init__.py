"""Recurrent layers and their gradients."""
