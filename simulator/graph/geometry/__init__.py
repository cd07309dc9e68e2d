"""Places of elements: intervals, patterns and strides, and arithmetic on them."""
