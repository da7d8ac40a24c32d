// Draws the charts of a page from the data beside them, in the reader's colours.
const boxes = document.querySelectorAll(".plotly-chart");
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function recoloured(layout) {
  const copy = structuredClone(layout);
  copy.font = { ...copy.font, color: colour("--ink") };
  for (const key of Object.keys(copy).filter(k => /^[xy]axis/.test(k)))
    Object.assign(copy[key], { gridcolor: colour("--grid"), linecolor: colour("--grid"), zerolinecolor: colour("--grid") });
  for (const note of copy.annotations ?? []) note.font = { ...note.font, color: colour("--ink") };
  return copy;
}

function draw() {
  for (const box of boxes) {
    const figure = JSON.parse(box.querySelector("script").textContent);
    Plotly.react(box.firstElementChild, figure.data, recoloured(figure.layout),
                 { responsive: true, displaylogo: false, displayModeBar: "hover" });
  }
}

if (window.Plotly) {
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
} else {
  for (const box of boxes) box.firstElementChild.textContent =
    "The chart needs plotly.min.js in this page's folder; the table above holds the same numbers.";
}
