"""Where methods run: the seam, the virtual clock, real processes, clusters."""
