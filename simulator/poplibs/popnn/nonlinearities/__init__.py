"""Functions of activations, and their gradients."""
