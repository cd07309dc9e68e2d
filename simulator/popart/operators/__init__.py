"""ONNX operators as operations of PopLibs, by domain, name and version."""
