"""The plain recurrent layer, and the backward passes of all recurrent layers."""
