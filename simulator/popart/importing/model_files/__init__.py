"""ONNX files and the values in them, beside them, or given to a model by a user."""
