"""What the builder of models takes: domains of operators, forms, notes, windows."""
