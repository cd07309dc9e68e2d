"""A stream copy in the machine's steps: its phases, and the syncs of one with the host.

Source: PopTorch user guide, "Overlapping compute and IO" (the phases of a copy without buffering);
one external sync before them and one internal sync after them, as the public screenshot of
tutorial 4 (SDK 2.0) shows.
"""

PHASES = ["StreamCopyBegin", "StreamCopy", "StreamCopyEnd"]
HOST_COPY = ["External", *PHASES, "Internal"]
