"""From programs of a user to steps of the machine: syncs, exchanges, copies."""
