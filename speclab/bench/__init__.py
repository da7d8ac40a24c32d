"""`make bench`: measures rates, costs and ratios here, and compares them with aims."""
