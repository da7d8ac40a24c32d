"""From what to run to what came of it: specs, cells, engines, the cache."""
