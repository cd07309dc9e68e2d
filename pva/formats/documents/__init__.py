"""The nested documents of the user guide, as JSON, CBOR or Parquet's neighbours read them."""
