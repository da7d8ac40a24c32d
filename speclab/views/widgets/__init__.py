"""Pictures with sliders above them: when a slider moves, the picture follows."""
