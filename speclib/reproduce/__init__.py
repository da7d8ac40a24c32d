"""make reproduce: what is stale, notebooks, pages."""
