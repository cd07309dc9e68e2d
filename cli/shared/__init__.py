"""What commands share: how they declare themselves, read a file, write a table and fail."""
