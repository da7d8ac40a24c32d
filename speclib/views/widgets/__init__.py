"""Controls above a drawing that follows them."""
