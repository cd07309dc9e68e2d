"""The objects of libpva, as views of columns."""
