"""Errors a caller can mend."""


class SpeclibError(Exception):
    """A mistake the caller can mend; the message names the thing, its value and the next step."""


class BadValue(SpeclibError, ValueError):
    """A value that is wrong; also a ValueError."""
