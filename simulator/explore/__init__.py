"""Many configurations of one program, each compiled and simulated in a process of its own."""
