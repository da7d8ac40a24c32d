"""Models: whatever can say which token follows a text.

All of them answer the same questions, those of the Protocol ``Model`` in
``speclib.operations.operation``:

- ``toy``, ``uncached``: models without weights, for exact acceptance rates;
- ``hf``: checkpoints that transformers loads and torch computes;
- ``parallel``: one such checkpoint computed by several processes, or several of its
  layers at once;
- ``llamacpp``: quantised checkpoints that llama.cpp computes on the CPU.

The other modules help to build them. ``factory`` builds what a pair describes. ``zoo``
finds and checks checkpoints, ``configuration`` says which of them can run, and
``vocabulary`` compares their tokens. ``dilate`` embeds a small one in a larger
architecture. ``window_cache`` keeps what a sliding window has left, and
``packed_linear`` speeds up small batches on CPUs. ``dtypes`` names number formats, and
``gpus`` counts GPUs. ``transformers_generate`` runs transformers' own decoding loop,
for comparison.

``hf``, ``dilate``, ``packed_linear``, ``window_cache``, ``parallel``,
``transformers_generate`` and ``llamacpp.export`` import torch; the others do not until
something is built.
"""
