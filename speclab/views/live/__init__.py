"""Interactive pictures: a reader drags them or presses keys, and they speak."""
