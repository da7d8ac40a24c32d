"""`make bench`: rates, costs and ratios of this machine against their aims."""
