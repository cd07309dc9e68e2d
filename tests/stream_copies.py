"""A stream copy in the machine's steps: its phases, and the syncs of one with the host.

Source: PopTorch user guide, "Overlapping compute and IO" (the phases of a copy without buffering);
the syncs are those around a stream copy in the user guide's profile sample, one after each of the
phases that move or hand back the buffer.
"""

PHASES = ["StreamCopyBegin", "StreamCopy", "StreamCopyEnd"]
HOST_COPY = ["External", *PHASES[:2], "Internal", *PHASES[2:], "Internal"]
