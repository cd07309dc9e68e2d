"""Programs that come with the simulator."""
