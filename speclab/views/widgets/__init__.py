"""Pictures with sliders above them, which update while a slider moves."""
