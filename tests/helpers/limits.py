"""Time limits of tests. A test that exceeds its limit fails and prints its threads.

A limit is many times what the test takes on a machine with two busy cores.
"""

# Seconds by marker; for all other tests the limit in pyproject.toml applies.
LIMITS = {"browser": 3600, "thorough": 3600, "slow": 900}
