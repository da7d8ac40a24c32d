"""Models that llama.cpp computes."""
