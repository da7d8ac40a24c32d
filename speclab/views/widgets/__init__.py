"""Pictures with sliders above them: the picture follows while a slider moves."""
