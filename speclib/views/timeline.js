// Zoom, pan and tooltips for a timeline. The picture, its layout and all its texts come from Python
// as one SVG; this file moves what is there along the time axis and shows what is too small at
// first. It also runs inside a saved .html page, where nothing but `mount` is called.

const MOST = 32;                                       // the deepest zoom Python has laid out
const gap = (width) => Math.min(1.5, width * 0.15);    // as svg.gap

function collect(svg) {
  const number = (node, name) => Number(node.getAttribute(name));
  const plot = svg.querySelector("svg.plot");
  const all = (query, pick) => [...svg.querySelectorAll(query)].map(pick);
  const tips = new WeakMap();
  for (const title of svg.querySelectorAll("title")) {
    tips.set(title.parentNode, title.textContent);
    title.remove();                                    // or the browser would show its own
  }
  // A label follows the bar drawn before it; its width is measured, not estimated, here.
  const labels = all("text.label", (node) => {
    node.removeAttribute("display");
    const bar = node.previousElementSibling;
    return { node, x: number(node, "x"), room: number(bar, "width") };
  });
  for (const label of labels) label.need = label.node.getComputedTextLength() + 2;
  return {
    plot, tips, labels,
    width: number(plot, "width"),
    bars: all(".lane rect", (node) => {
      const width = number(node, "width");             // undo the gap: w - min(1.5, 0.15 w)
      const full = width / 0.85 < 10 ? width / 0.85 : width + 1.5;
      return { node, x: number(node, "x"), width: full };
    }),
    lines: all(".run > line", (node) => ({ node, x: number(node, "x1") })),
    spots: all("rect.spot", (node) => ({ node, x: number(node, "x") + 5 })),
    texts: all(".row text", (node) => ({ node, x: number(node, "x") })),
    ticks: all(".ticks text, .ticks line", (node) => ({
      node, x: number(node, node.tagName === "line" ? "x1" : "x") })),
    levels: all("[data-level]", (node) => ({ node, level: Number(node.dataset.level) })),
  };
}

function draw(parts, view) {
  const { zoom, start } = view, end = parts.width;
  const at = (x) => (x - start) * zoom;
  const best = Math.max(...parts.levels.map((l) => l.level).filter((l) => l <= zoom + 1e-6), 1);
  for (const { node, level } of parts.levels) node.style.display = level === best ? "inline" : "none";
  for (const { node, x, width } of parts.bars) {
    node.setAttribute("x", at(x));
    node.setAttribute("width", Math.max(0.1, width * zoom - gap(width * zoom)));
  }
  for (const { node, x, room, need } of parts.labels) {
    node.setAttribute("x", at(x));
    node.style.display = need <= room * zoom ? "inline" : "none";
  }
  for (const { node, x } of parts.lines) {
    node.setAttribute("x1", at(x));
    node.setAttribute("x2", at(x));
  }
  for (const { node, x } of parts.spots) node.setAttribute("x", at(x) - 5);
  for (const { node, x } of parts.texts) node.setAttribute("x", at(x));
  for (const { node, x } of parts.ticks) {
    const px = at(x);
    for (const name of node.tagName === "line" ? ["x1", "x2"] : ["x"]) node.setAttribute(name, px);
    node.style.display = px < -0.5 || px > end + 0.5 ? "none" : "inline";
  }
}

// Shows the SVG that `root` holds; `view` outlives redraws, so a zoom stays while a slider moves.
export function mount(root, view = { zoom: 1, start: 0 }) {
  const svg = root.querySelector("svg");
  const parts = collect(svg);
  const scale = () => svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
  const left = Number(parts.plot.getAttribute("x"));
  const place = (event) => (event.clientX - svg.getBoundingClientRect().left) * scale() - left;
  const inside = (px) => px >= 0 && px <= parts.width;
  const add = (name, more) => root.appendChild(
    Object.assign(document.createElement("div"), { className: name, ...more }));
  const tip = add("speclib-tip", { hidden: true });
  add("speclib-hint", { textContent: "Ctrl + wheel zooms, dragging moves, a double click resets" });
  let held = null;

  const move = (zoom, start) => {
    view.zoom = Math.min(MOST, Math.max(1, zoom));
    view.start = Math.min(parts.width - parts.width / view.zoom, Math.max(0, start));
    draw(parts, view);
  };
  const scaleAt = (factor, px) => {                    // the time under the pointer stays there
    const zoom = Math.min(MOST, Math.max(1, view.zoom * factor));
    move(zoom, view.start + px / view.zoom - px / zoom);
  };
  const point = (event) => {
    const text = held ? null : parts.tips.get(event.target);
    tip.hidden = !text;
    if (!text) return;
    const [first, ...rest] = text.split("\n");
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: first }),
      ...rest.map((t) => Object.assign(document.createElement("div"), { textContent: t })));
    const box = root.getBoundingClientRect();
    const x = event.clientX - box.left + 14, y = event.clientY - box.top + 18;
    tip.style.left = `${Math.max(0, Math.min(x, box.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y}px`;
  };
  svg.addEventListener("pointermove", (event) => {
    if (held) move(view.zoom, held.start - (place(event) - held.px) / view.zoom);
    point(event);
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  svg.addEventListener("pointerdown", (event) => {
    if (event.button || !inside(place(event))) return;
    held = { px: place(event), start: view.start };
    svg.setPointerCapture(event.pointerId);
    svg.style.cursor = "grabbing";
  });
  svg.addEventListener("pointerup", () => { held = null; svg.style.cursor = ""; });
  svg.addEventListener("pointercancel", () => { held = null; svg.style.cursor = ""; });
  svg.addEventListener("dblclick", () => move(1, 0));
  svg.addEventListener("wheel", (event) => {           // a plain wheel scrolls the page
    if (!(event.ctrlKey || event.metaKey || event.altKey) || !inside(place(event))) return;
    event.preventDefault();
    scaleAt(Math.exp(-event.deltaY / 300), place(event));
  }, { passive: false });
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => {
    const keys = { "+": () => scaleAt(1.5, parts.width / 2), "-": () => scaleAt(1 / 1.5, parts.width / 2),
      ArrowRight: () => move(view.zoom, view.start + parts.width / view.zoom / 8),
      ArrowLeft: () => move(view.zoom, view.start - parts.width / view.zoom / 8),
      0: () => move(1, 0) };
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
  move(view.zoom, view.start);
}

function render({ model, el }) {
  const view = { zoom: 1, start: 0 };
  const root = document.createElement("div");
  root.className = "speclib-timeline";
  el.append(root);
  const show = () => {
    const began = performance.now();
    root.innerHTML = model.get("svg");
    mount(root, view);
    root.dataset.drawn = (performance.now() - began).toFixed(1);   // milliseconds, for tests
  };
  model.on("change:svg", show);
  // Text cannot be measured before it is in the page.
  requestAnimationFrame(show);
  return () => model.off("change:svg", show);
}

export default { render };
