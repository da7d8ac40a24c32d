"""What a device can be asked to do: one file an operation."""
