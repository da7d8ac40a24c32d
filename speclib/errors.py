"""Errors a caller can mend."""


class SpeclibError(Exception):
    """A mistake the caller can mend; the message names the thing, its value and the next step."""
