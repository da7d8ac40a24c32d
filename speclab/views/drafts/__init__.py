"""What a draft model wrote in one round, in pictures: several sequences, or a tree."""
