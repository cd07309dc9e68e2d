"""What a program is compiled for: machines as data, targets and their options."""
