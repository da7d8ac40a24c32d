"""Media types of notebook outputs that pages treat in a way of their own."""

PLOTLY = "application/vnd.plotly.v1+json"  # a chart as data
WIDGET = "application/vnd.jupyter.widget-view+json"  # needs a kernel to be shown
