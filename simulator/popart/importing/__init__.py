"""From an ONNX model to the intermediate representation: checks, inference, folding, bodies."""
