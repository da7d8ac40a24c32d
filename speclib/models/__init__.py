"""Models: whatever can say which token follows a text.

All of them answer the same questions, those of ``speclib.operations.model.Model``:

- ``toy``: models without weights, for exact acceptance rates;
- ``hf``: checkpoints that transformers loads and torch computes;
- ``parallel``: one such checkpoint computed by several processes, or several of its
  layers at once;
- ``llamacpp``: quantised checkpoints that llama.cpp computes on the CPU.

The other modules help to build them. ``open_pair`` opens what a pair describes, and
builds it. ``zoo`` finds and checks checkpoints, ``fetch`` brings the embedded ones
where there is no checkout, ``checkpoint`` knows their files, ``file_states`` notices
when these change, and ``complete`` refuses one whose weights are not those of its
configuration. ``configuration`` says which models can run,
``vocabulary`` compares their tokens, and ``known_tokens`` stands in for those that a
draft lacks. ``dilate`` embeds a small one in a larger architecture. ``weights`` fills a
network with the part that a rank keeps. ``footprint`` counts what a pair takes in
memory, in ``part``s, and ``preflight`` refuses what cannot be loaded. ``kv_cache``
keeps every token where it is, also those that a sliding window has left; ``fixed_rows``
makes passes of one shape, and ``recorded_pass`` has a GPU repeat them. ``seats`` gives
several requests a model each over one network, which ``batched`` feeds. ``eagle_head``
drafts from its target's features. ``packed_linear`` speeds up small batches on CPUs,
``dtypes`` names number formats, and ``gpus`` counts GPUs.

``hf``, ``dilate``, ``weights``, ``footprint``, ``kv_cache``, ``fixed_rows``,
``recorded_pass``, ``batched``, ``eagle_head``, ``packed_linear``, ``parallel`` and
``llamacpp.export`` import torch; the others do not until something is built.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "batched",
    "checkpoint",
    "complete",
    "dtypes",
    "eagle_head",
    "fetch",
    "fingerprint",
    "fixed_rows",
    "gpus",
    "hf",
    "open_pair",
    "parallel.fuzzy_pass",
    "preflight",
    "rank",
    "seats",
    "toy",
    "zoo",
)
