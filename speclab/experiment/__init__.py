"""From what to run to what came of it: specs, cells, engines, the cache."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "cache",
    "cache_keys",
    "cells.grid_row",
    "cells.layer_similarity",
    "cells.measured_prompt",
    "cells.outputs",
    "cells.replayed_prompt",
    "cells.timed_passes",
    "cells.toy_requests",
    "engines.cache_transport",
    "engines.latency_acceptance_grid",
    "engines.places",
    "engines.similarity",
    "engines.virtual",
    "environments",
    "limits",
    "on_nodes",
    "other_load",
    "pool",
    "run_cells",
    "spec",
)
