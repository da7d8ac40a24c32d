"""From what to run to what came out: specs, cells, engines, and the cache of finished cells."""
