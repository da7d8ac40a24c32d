"""Devices on the machines of a Ray cluster. Needs the extra ``cluster``."""
