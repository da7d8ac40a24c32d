"""How many cells run at once, in which order, and from the cache where it has them."""
