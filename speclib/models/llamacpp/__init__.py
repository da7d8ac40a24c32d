"""Models that llama.cpp computes, on the CPU and quantised.

``gguf`` opens and describes llama.cpp's files, ``export`` writes a transformers
checkpoint as one, and ``quantised_model`` runs one. All three need the extra
``llamacpp``.
"""
