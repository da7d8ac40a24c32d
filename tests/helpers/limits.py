"""How long a test may take. One that is late fails, and shows where its threads are.

Limits are many times what a test takes on a machine of two busy cores.
"""

# Seconds by marker; other tests have pyproject.toml's.
LIMITS = {"browser": 3600, "thorough": 3600, "slow": 900}
