"""Quantised models that llama.cpp runs on the CPU.

``gguf`` opens and describes llama.cpp's files, ``export`` writes a transformers
checkpoint to such a file, and ``quantised_model`` runs one. All three require the extra
``llamacpp``.
"""
