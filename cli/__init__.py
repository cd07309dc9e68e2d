"""The command line `tilescope`."""
