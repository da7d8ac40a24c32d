// Zoom, pan and tooltips for a timeline. The picture, its layout and all its texts come from Python
// as one SVG; this file moves what is there along the time axis and shows what is too small at
// first. It also runs inside a saved .html page, where nothing but `mount` is called.

const MOST = 40;                                       // the deepest zoom Python has laid out
const DENSE = 4;                                       // as svg.DENSE
const gap = (width) => Math.min(1.5, width * 0.15);    // as svg.gap

function collect(svg, plot) {
  const number = (node, name) => Number(node.getAttribute(name));
  const room = (node) => Number(node.dataset.room);
  const all = (query, pick) => [...svg.querySelectorAll(query)].map(pick);
  const labels = all("text.label", (node) => {         // a label follows the bar it names
    node.removeAttribute("display");
    return { node, x: number(node, "x"), room: number(node.previousElementSibling, "width") };
  });
  for (const label of labels) label.need = label.node.getComputedTextLength() + 4;
  return {
    labels,
    width: number(plot, "width"),
    bars: all(".lane rect", (node) => {
      const drawn = number(node, "width");             // w - gap(w), so:
      return { node, x: number(node, "x"), width: drawn < 8.5 ? drawn / 0.85 : drawn + 1.5 };
    }),
    lines: all(".run > line", (node) => ({ node, x: number(node, "x1"), room: room(node) })),
    spots: all("rect.spot", (node) => ({ node, x: number(node, "x") + 5, room: room(node) })),
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
    node.setAttribute("width", width * zoom - gap(width * zoom));
  }
  for (const { node, x, room, need } of parts.labels) {
    node.setAttribute("x", at(x));
    node.style.display = need <= room * zoom ? "inline" : "none";
  }
  for (const { node, x, room } of parts.lines) {
    node.setAttribute("x1", at(x));
    node.setAttribute("x2", at(x));
    node.style.display = room * zoom >= DENSE ? "inline" : "none";
  }
  for (const { node, x, room } of parts.spots) {
    node.setAttribute("x", at(x) - 5);
    node.style.display = room * zoom >= DENSE ? "inline" : "none";
  }
  for (const { node, x } of parts.texts) node.setAttribute("x", at(x));
  for (const { node, x } of parts.ticks) {
    const px = at(x);
    for (const name of node.tagName === "line" ? ["x1", "x2"] : ["x"]) node.setAttribute(name, px);
    node.style.display = px < -0.5 || px > end + 0.5 ? "none" : "inline";
  }
}

// Brings the SVG that `root` holds to life; `view` outlives it, so a zoom stays while a slider moves.
export function mount(root, view = { zoom: 1, start: 0 }) {
  const svg = root.querySelector("svg"), plot = svg.querySelector("svg.plot");
  const width = Number(plot.getAttribute("width")), left = Number(plot.getAttribute("x"));
  const scale = () => svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
  const place = (event) => (event.clientX - svg.getBoundingClientRect().left) * scale() - left;
  const inside = (px) => px >= 0 && px <= width;
  const add = (name, more) => root.appendChild(
    Object.assign(document.createElement("div"), { className: name, ...more }));
  const tip = add("speclib-tip", { hidden: true }), tips = new WeakMap();
  add("speclib-hint", { textContent: "Ctrl + wheel zooms, dragging moves, a double click resets" });
  let held = null, parts = null;                       // parts: found when first needed

  const move = (zoom, start) => {
    view.zoom = Math.min(MOST, Math.max(1, zoom));
    view.start = Math.min(width - width / view.zoom, Math.max(0, start));
    parts ??= collect(svg, plot);
    draw(parts, view);
  };
  const scaleAt = (factor, px) => {                    // the time under the pointer stays there
    const zoom = Math.min(MOST, Math.max(1, view.zoom * factor));
    move(zoom, view.start + px / view.zoom - px / zoom);
  };
  const point = (event) => {
    const title = event.target.querySelector(":scope > title");
    if (title) {
      tips.set(event.target, title.textContent);
      title.remove();                                  // or the browser would show its own
    }
    const text = held ? null : tips.get(event.target);
    tip.hidden = !text;
    if (!text) return;
    const [first, ...rest] = text.split("\n");
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: first }),
      ...rest.map((t) => Object.assign(document.createElement("div"), { textContent: t })));
    const box = root.getBoundingClientRect();
    const x = event.clientX - box.left + 14, y = event.clientY - box.top;
    const below = y + 18 + tip.offsetHeight <= box.height;
    tip.style.left = `${Math.max(0, Math.min(x, box.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${below ? y + 18 : y - tip.offsetHeight - 10}px`;
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
    const keys = { "+": () => scaleAt(1.5, width / 2), "-": () => scaleAt(1 / 1.5, width / 2),
      ArrowRight: () => move(view.zoom, view.start + width / view.zoom / 8),
      ArrowLeft: () => move(view.zoom, view.start - width / view.zoom / 8),
      0: () => move(1, 0) };
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
  if (view.zoom > 1) move(view.zoom, view.start);      // else it is drawn as it should be
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
  show();
  return () => model.off("change:svg", show);
}

export default { render };
