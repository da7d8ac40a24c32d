"""One round of several drafts, or of a tree of them."""
