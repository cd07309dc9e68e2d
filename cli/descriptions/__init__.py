"""What a file of programs or a run of one is, in the facts that commands print of it."""
