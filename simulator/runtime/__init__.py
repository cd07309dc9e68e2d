"""What happens when a compiled program runs: values, streams and clocks."""
