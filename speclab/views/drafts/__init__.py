"""Pictures of a round's draft: several sequences, a tree, or branches."""
