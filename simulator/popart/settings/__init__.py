"""What users set before a session: choices by name, devices, which data goes in and out."""
