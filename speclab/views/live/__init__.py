"""Pictures that a reader takes hold of: drags, keys, and a voice for each of them."""
