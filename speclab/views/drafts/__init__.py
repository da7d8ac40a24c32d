"""Pictures of one round's draft: several sequences, a tree, or branches."""
