"""A module of PyTorch as an ONNX model, whose nodes know their module and line."""
