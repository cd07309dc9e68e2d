"""What pages are made of: components, columns of tables, icons, static elements."""
