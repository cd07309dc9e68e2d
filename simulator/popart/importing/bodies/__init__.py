"""Bodies laid out run by run or packed in rows, and the sequences that they carry."""
