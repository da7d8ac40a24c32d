"""Pictures that a reader can drag and control by keys, with a spoken description."""
