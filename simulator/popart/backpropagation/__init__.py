"""From the losses of a model to the changes of its weights."""
