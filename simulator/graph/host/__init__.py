"""What joins the device to the host and to memory outside: streams, buffers, functions, copies."""
