"""A model repository served as Triton Inference Server does, on the simulator."""
