"""Devices on the machines of a Ray cluster; requires the extra ``cluster``."""
