// Zoom, pan and tooltips for a timeline.
//
// The picture, its layout and all its texts come from Python as one SVG (see render.py).
// This file moves what is there along the time axis, shows what is too small at first, and plays
// the runs.
// It also runs inside a saved .html page, where nothing but `mount` is called.
// It also tells Python how wide the page is, and Python lays the picture out for it;
// for that Python puts room.js before this file.
//
// All x are pixels of the SVG along the time axis, from its left end, as Python wrote them.
// A view is { zoom, start }: how many times the axis is stretched, and the x at the left end
// of what is visible.

const MOST_ZOOM = 40;
const ZOOM_STEP = 1.5;                // of the keys + and -
const WHEEL_PER_ZOOM = 300;           // wheel units that zoom in by a factor of e
const PAN_STEP = 1 / 8;               // of the visible part, by an arrow key
const LABEL_MARGIN = 4;               // pixels of a box that its label leaves free
const SPOT = 5;                       // from the left edge of a pointing area to its line
const DENSE = 4;                      // as DENSE in render.py
const MOST_GAP = 1.5;                 // these two: as gap_after in render.py
const GAP_SHARE = 0.15;

const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
const show = (node, isVisible) => { node.style.display = isVisible ? "inline" : "none"; };
const numberOf = (node, attribute) => Number(node.getAttribute(attribute));

// -- the parts of the picture that zooming moves --------------------------------------------

// White right of a box, so that neighbours are told apart.
function gapAfter(width) {
  return Math.min(MOST_GAP, width * GAP_SHARE);
}

// The width of a box without the gap that was taken off it.
function widthWithGap(drawn) {
  const isNarrow = drawn < MOST_GAP / GAP_SHARE - MOST_GAP;
  return isNarrow ? drawn / (1 - GAP_SHARE) : drawn + MOST_GAP;
}

function findParts(svg, plot) {
  const find = (selector, describe) => [...svg.querySelectorAll(selector)].map(describe);

  const labels = find("text.label", (node) => {
    node.removeAttribute("display");            // a hidden text has no length
    const box = node.previousElementSibling;    // a label follows the box that it names
    const lane = node.closest(".lane");
    return { node, lane, x: numberOf(node, "x"), width: numberOf(box, "width") };
  });
  for (const label of labels) {
    label.needed = label.node.getComputedTextLength() + LABEL_MARGIN;
  }

  return {
    labels,
    plotWidth: numberOf(plot, "width"),
    boxes: find(".lane rect", (node) => (
      { node, x: numberOf(node, "x"), width: widthWithGap(numberOf(node, "width")) })),
    lines: find(".run > line", (node) => (
      { node, x: numberOf(node, "x1"), gap: Number(node.dataset.room) })),
    spots: find("rect.spot", (node) => (
      { node, x: numberOf(node, "x") + SPOT, gap: Number(node.dataset.room) })),
    texts: find(".row text", (node) => ({ node, x: numberOf(node, "x") })),
    tickLabels: find(".ticks text", (node) => ({ node, x: numberOf(node, "x") })),
    tickLines: find(".ticks line", (node) => ({ node, x: numberOf(node, "x1") })),
    levels: find("[data-level]", (node) => ({ node, level: Number(node.dataset.level) })),
  };
}

function moveParts(parts, view) {
  const { zoom, start } = view;
  const pixel = (x) => (x - start) * zoom;
  const isOnAxis = (x) => pixel(x) >= -0.5 && pixel(x) <= parts.plotWidth + 0.5;
  const setLine = (node, x) => {
    node.setAttribute("x1", pixel(x));
    node.setAttribute("x2", pixel(x));
  };

  showLevel(parts.levels, zoom);
  for (const { node, x, width } of parts.boxes) {
    node.setAttribute("x", pixel(x));
    node.setAttribute("width", width * zoom - gapAfter(width * zoom));
  }
  const labelled = lanesWithLabels(parts.labels, zoom);
  for (const { node, lane, x, width, needed } of parts.labels) {
    node.setAttribute("x", pixel(x));
    show(node, labelled.has(lane) && needed <= width * zoom);
  }
  for (const { node, x, gap } of parts.lines) {
    setLine(node, x);
    show(node, gap * zoom >= DENSE);
  }
  for (const { node, x, gap } of parts.spots) {
    node.setAttribute("x", pixel(x) - SPOT);
    show(node, gap * zoom >= DENSE);
  }
  for (const { node, x } of parts.texts) {
    node.setAttribute("x", pixel(x));
  }
  for (const { node, x } of parts.tickLabels) {
    node.setAttribute("x", pixel(x));
    show(node, isOnAxis(x));
  }
  for (const { node, x } of parts.tickLines) {
    setLine(node, x);
    show(node, isOnAxis(x));
  }
}

// The lanes in which labels fit into at least half of the boxes; as shows_labels in render.py.
function lanesWithLabels(labels, zoom) {
  const fitting = new Map();                    // lane -> how many of its labels fit
  for (const { lane, width, needed } of labels) {
    if (needed <= width * zoom) fitting.set(lane, (fitting.get(lane) ?? 0) + 1);
  }
  const boxes = (lane) => lane.querySelectorAll("rect:not(.idle):not(.lost)").length;
  return new Set([...fitting.keys()].filter((lane) => 2 * fitting.get(lane) >= boxes(lane)));
}

// Python laid some parts out once per zoom level: shows the deepest level that `zoom` reaches.
function showLevel(levels, zoom) {
  let best = 1;
  for (const { level } of levels) {
    if (level <= zoom + 1e-6) best = Math.max(best, level);
  }
  for (const { node, level } of levels) show(node, level === best);
}

// -- tooltips -------------------------------------------------------------------------------

function addElement(root, className, text = "") {
  const element = document.createElement("div");
  element.className = className;
  element.textContent = text;
  return root.appendChild(element);
}

// The tooltip of `root`: `showBeside(element)` shows what an element says, below or above it.
function makeTooltip(root) {
  const tooltip = addElement(root, "speclib-tip");
  tooltip.setAttribute("role", "status");       // read aloud when a key asks for it
  tooltip.hidden = true;
  const texts = new WeakMap();

  const textOf = (element) => {
    const title = element.querySelector(":scope > title");
    if (title) {
      texts.set(element, title.textContent);
      title.remove();                           // or the browser would show its own tooltip
    }
    return texts.get(element);
  };
  let filled = null;
  const fill = (text) => {
    if (text === filled) return;                // or it would be read aloud again
    filled = text;
    const [heading, ...lines] = text.split("\n");
    const bold = document.createElement("b");
    bold.textContent = heading;
    tooltip.replaceChildren(bold);
    for (const line of lines) addElement(tooltip, "", line);
  };
  const placeBeside = (element, clientX) => {
    const frame = root.getBoundingClientRect();
    const box = element.getBoundingClientRect();
    const left = clamp(clientX - frame.left + 14, 0, frame.width - tooltip.offsetWidth - 4);
    const below = box.bottom - frame.top + 6;
    const above = box.top - frame.top - tooltip.offsetHeight - 6;
    tooltip.style.left = `${Math.max(0, left)}px`;
    tooltip.style.top = `${below + tooltip.offsetHeight <= frame.height ? below : above}px`;
  };

  return {
    textOf,
    hide() { tooltip.hidden = true; },
    showBeside(element, clientX = element.getBoundingClientRect().left) {
      const text = textOf(element);
      tooltip.hidden = !text;
      if (!text) return;
      fill(text);
      placeBeside(element, clientX);
    },
  };
}

// -- what a reader does ---------------------------------------------------------------------

// Brings the SVG that `root` holds to life. `view` outlives it, so that a reader's zoom stays
// while a slider replaces the picture.
export function mount(root, view = { zoom: 1, start: 0, explained: null }) {
  const svg = root.querySelector("svg");
  const plot = svg.querySelector("svg.plot");
  const plotWidth = numberOf(plot, "width");
  const plotLeft = numberOf(plot, "x");
  const tooltip = makeTooltip(root);
  view.start *= plotWidth / (view.plotWidth ?? plotWidth);   // it was laid out anew
  view.plotWidth = plotWidth;
  addElement(root, "speclib-hint", "Space plays, ← → step, ↑ ↓ explain a box; Ctrl + wheel zooms, dragging moves, a double click resets");
  let parts = null;                             // found when something first moves

  let whenMoved = () => {};
  let explained = null;                         // the box that a key has asked about
  const moveTo = (zoom, start) => {
    view.zoom = clamp(zoom, 1, MOST_ZOOM);
    const lastStart = plotWidth - plotWidth / view.zoom;
    view.start = Math.min(lastStart, Math.max(0, start));
    parts ??= findParts(svg, plot);
    moveParts(parts, view);
    if (explained) tooltip.showBeside(explained);
    whenMoved();
  };
  const reset = () => moveTo(1, 0);
  const zoomBy = (factor, px) => {              // what stands at `px` stays there
    const zoom = clamp(view.zoom * factor, 1, MOST_ZOOM);
    moveTo(zoom, view.start + px / view.zoom - px / zoom);
  };
  const panBy = (share) => moveTo(view.zoom, view.start + share * plotWidth / view.zoom);

  const pixelsOf = (event) => {                 // of the plot; the page may show it smaller
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    return (event.clientX - box.left) * scale - plotLeft;
  };
  const boxesWithTips = () => [...plot.querySelectorAll("rect")].filter(
    (box) => tooltip.textOf(box) && box.getBoundingClientRect().width > 0);
  const explainNext = (direction) => {
    const boxes = boxesWithTips();
    const here = boxes.indexOf(explained);      // -1 where there is none, or it is hidden
    const count = boxes.length;
    explainBox(here < 0 && direction < 0 ? count - 1 : (here + direction + count) % count);
  };
  const explainBox = (index) => {
    const box = boxesWithTips()[index];
    if (!box) return;
    stopExplaining();
    explained = box;
    view.explained = index;                     // found again when the picture is drawn anew
    explained.classList.add("explained");
    bringIntoView(explained);
    tooltip.showBeside(explained);
  };
  const stopExplaining = () => {
    explained?.classList.remove("explained");
    explained = null;
    view.explained = null;
    tooltip.hide();
  };
  const bringIntoView = (box) => {              // its middle, at least
    const middle = numberOf(box, "x") + numberOf(box, "width") / 2;
    if (middle >= 0 && middle <= plotWidth) return;
    moveTo(view.zoom, view.start + (middle - plotWidth / 2) / view.zoom);
  };
  // What the pointer is on is explained, and else the box that a key has asked about.
  const explainUnderPointer = (event) => {
    const saysSomething = event.type !== "pointerleave" && tooltip.textOf(event.target);
    if (saysSomething) tooltip.showBeside(event.target, event.clientX);
    else if (explained) tooltip.showBeside(explained);
    else tooltip.hide();
  };
  const isOnPlot = (event) => pixelsOf(event) >= 0 && pixelsOf(event) <= plotWidth;

  listenToPointer();
  listenToWheel();
  listenToKeys();
  if (view.zoom > 1) moveTo(view.zoom, view.start);   // else it is drawn as it should be
  return {
    plot, plotWidth, explainBox,
    pixelOf: (share) => (share * plotWidth - view.start) * view.zoom,
    onMove: (action) => { whenMoved = action; },
  };

  function listenToPointer() {
    let held = null;                            // where and in which view a drag began
    const letGo = () => {
      held = null;
      svg.style.cursor = "";
    };
    svg.addEventListener("pointerdown", (event) => {
      if (event.button || !isOnPlot(event)) return;
      held = { px: pixelsOf(event), start: view.start };
      svg.setPointerCapture(event.pointerId);
      svg.style.cursor = "grabbing";
    });
    svg.addEventListener("pointermove", (event) => {
      if (held) {
        moveTo(view.zoom, held.start - (pixelsOf(event) - held.px) / view.zoom);
        tooltip.hide();
      } else {
        explainUnderPointer(event);
      }
    });
    svg.addEventListener("pointerup", letGo);
    svg.addEventListener("pointercancel", letGo);
    svg.addEventListener("pointerleave", explainUnderPointer);
    svg.addEventListener("dblclick", reset);
  }

  function listenToWheel() {
    svg.addEventListener("wheel", (event) => {
      const isZoom = event.ctrlKey || event.metaKey || event.altKey;
      if (!isZoom || !isOnPlot(event)) return;  // a plain wheel scrolls the page
      event.preventDefault();
      zoomBy(Math.exp(-event.deltaY / WHEEL_PER_ZOOM), pixelsOf(event));
    }, { passive: false });
  }

  function listenToKeys() {
    const actions = {
      "+": () => zoomBy(ZOOM_STEP, plotWidth / 2),
      "-": () => zoomBy(1 / ZOOM_STEP, plotWidth / 2),
      ArrowRight: () => panBy(PAN_STEP),
      ArrowLeft: () => panBy(-PAN_STEP),
      ArrowDown: () => explainNext(1),
      ArrowUp: () => explainNext(-1),
      Escape: stopExplaining,
      0: reset,
    };
    const isOfPlayer = ({ key, shiftKey }) => ["ArrowLeft", "ArrowRight"].includes(key) && !shiftKey;
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("focusout", stopExplaining);
    svg.addEventListener("keydown", (event) => {
      const action = actions[event.key];
      const isForOthers = event.ctrlKey || event.altKey || event.metaKey;
      if (!action || isForOthers || isOfPlayer(event)) return;
      if (event.key === "Escape" && !explained) return;
      event.preventDefault();
      event.stopPropagation();
      action();
    });
  }
}

// -- the player -----------------------------------------------------------------------------

// Puts a player below the picture of `root`: a cursor that moves along the axis, the text of each
// run until then, and a sentence on what happened last. What lies ahead of the cursor is faded.
// Space plays and pauses, the arrow keys step from commit to commit.
//
// `picture` is what `mount` returned. `story` has runs, each with a label and moments of
// [share of the axis, text so far, sentence]. `state` and `sentence`, the element that is read
// aloud, outlive the picture.
export function mountPlayer(root, picture, story, state = { share: null, speed: 1 }, sentence = makeSentence()) {
  nameForScreenReaders(root, story.runs);
  const moments = story.runs.flatMap((run) => run.moments);
  const shares = [...new Set(moments.map(([share]) => share))].sort((a, b) => a - b);
  const end = Math.max(...shares, 0);
  if (!end) return { stop() {}, bar: addElement(root, "speclib-player") };
  let frame = null;                             // of the animation that plays

  const { cursor, veil } = addCursor(picture);
  const bar = addElement(root, "speclib-player");
  const button = addButton(bar, "▶ Play", () => (frame === null ? play() : pause()));
  addButton(bar, "◀ Step", () => step(-1));
  addButton(bar, "Step ▶", () => step(1));
  const speed = addSpeeds(bar, state);
  root.append(sentence);
  const texts = story.runs.map((run) => addText(root, run.label));

  const show = () => {
    const isOn = state.share !== null;
    const x = isOn ? picture.pixelOf(state.share) : 0;
    for (const node of [cursor, veil]) setVisible(node, isOn);
    for (const { line } of texts) line.hidden = !isOn;
    if (!isOn) return;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    veil.setAttribute("x", Math.max(0, x));
    veil.setAttribute("width", Math.max(0, picture.plotWidth - Math.max(0, x)));
    let last = null;
    story.runs.forEach((run, number) => {
      const past = run.moments.filter(([share]) => share <= state.share + 1e-9);
      texts[number].text.textContent = past.length ? past.at(-1)[1] : "";
      const latest = past.at(-1);
      if (latest && (!last || latest[0] >= last[0])) last = latest;
    });
    const said = last ? last[2] : "Nothing is written yet.";
    if (sentence.textContent !== said) sentence.textContent = said;
  };
  const moveTo = (share) => {
    state.share = clamp(share, 0, end);
    show();
  };

  function play() {
    if (state.share === null || state.share >= end) moveTo(0);
    button.textContent = "❚❚ Pause";
    let before = performance.now();
    const tick = (now) => {
      moveTo(state.share + (now - before) / 1000 / SECONDS_OF_PLAY * Number(speed.value));
      before = now;
      if (state.share >= end) pause();
      else frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
  }
  function pause() {
    cancelAnimationFrame(frame);
    frame = null;
    button.textContent = "▶ Play";
  }
  function step(direction) {
    pause();
    const now = state.share ?? 0;
    const next = direction > 0
      ? shares.find((share) => share > now + 1e-9) ?? end
      : shares.findLast((share) => share < now - 1e-9) ?? 0;
    moveTo(next);
  }
  root.addEventListener("keydown", (event) => {
    const actions = {
      " ": () => (frame === null ? play() : pause()),
      ArrowRight: () => step(1),
      ArrowLeft: () => step(-1),
    };
    const isFormField = ["BUTTON", "SELECT"].includes(event.target.tagName);
    if (event.shiftKey || isFormField || !actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  });
  picture.onMove(show);
  show();
  return { stop: pause, bar };
}

// What is read aloud whenever it changes: the last step.
function makeSentence() {
  const sentence = document.createElement("div");
  sentence.className = "speclib-sentence";
  sentence.setAttribute("role", "status");
  return sentence;
}

// Without a name a picture that takes the focus is read as nothing.
function nameForScreenReaders(root, runs) {
  const svg = root.querySelector("svg");
  svg.setAttribute("role", "application");      // so that its keys come to it
  svg.setAttribute("aria-roledescription", "timeline");
  svg.setAttribute("aria-label", `Timeline of ${runs.map((run) => run.label).join(", ")}. ${KEYS}`);
}

const KEYS = "Space plays, left and right step, up and down explain a box.";
const SECONDS_OF_PLAY = 8;            // for the whole axis, at speed 1
const SPEEDS = [["slow", 0.33], ["normal", 1], ["fast", 3]];
const SVG = "http://www.w3.org/2000/svg";

function setVisible(node, isVisible) { node.style.display = isVisible ? "" : "none"; }

// A line at the present moment, and a veil over what lies ahead of it.
function addCursor({ plot }) {
  const height = plot.getAttribute("height");
  const make = (name, attributes) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.style.pointerEvents = "none";
    return plot.appendChild(node);
  };
  const veil = make("rect", { y: 0, height, class: "veil", fill: "#fff", "fill-opacity": 0.72 });
  const line = { y1: 0, y2: height, class: "cursor", stroke: "#1a1a1a", "stroke-width": 2 };
  return { veil, cursor: make("line", line) };
}

function addButton(bar, label, action) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", action);
  return bar.appendChild(button);
}

function addSpeeds(bar, state) {
  const select = document.createElement("select");
  select.setAttribute("aria-label", "speed of the player");
  for (const [name, value] of SPEEDS) select.add(new Option(name, value));
  select.value = String(state.speed);
  select.addEventListener("change", () => { state.speed = Number(select.value); });
  return bar.appendChild(select);
}

// A line of text: the run's name, and what it has written so far, in letters of one width, so
// that the same text stands in the same columns.
function addText(root, label) {
  const line = addElement(root, "speclib-text");
  line.hidden = true;
  addElement(line, "speclib-text-name", label);
  const text = document.createElement("code");
  line.append(text);
  return { line, text };
}

// The widget in a notebook: what anywidget calls for each output that shows it.
function render({ model, el }) {
  const view = { zoom: 1, start: 0, explained: null };
  let root = document.createElement("div");
  root.className = "speclib-timeline";
  root.dataset.lmSuppressShortcuts = "true";    // or JupyterLab would take the keys
  el.append(root);

  const player = { share: null, speed: 1 };
  const sentence = makeSentence();
  let playing = { stop() {} };
  const projector = makeProjector(model, el);
  const showPicture = () => {
    const began = performance.now();
    playing.stop();
    const hadFocus = root.querySelector("svg")?.contains(document.activeElement) ?? false;
    const onButton = root.querySelector("button.projector") === document.activeElement;
    const asked = view.explained;
    const fresh = root.cloneNode(false);        // without the listeners of the last picture
    root.replaceWith(fresh);
    root = fresh;
    root.innerHTML = model.get("svg");
    root.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() !== "r" || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      model.set("asked_anew", model.get("asked_anew") + 1);
      model.save_changes();
    });
    const picture = mount(root, view);
    playing = mountPlayer(root, picture, model.get("story"), player, sentence);
    projector.addButtonTo(playing.bar);
    if (hadFocus) root.querySelector("svg").focus({ preventScroll: true });
    if (onButton) root.querySelector("button.projector")?.focus({ preventScroll: true });
    if (hadFocus && asked !== null) picture.explainBox(asked);
    root.dataset.drawn = (performance.now() - began).toFixed(1);   // milliseconds, for tests
  };
  model.on("change:svg", showPicture);
  showPicture();
  nameSliders();
  const forgetButtons = liveButtons(model, el);
  const stopMeasuring = measureWidth(el, (width) => {
    model.set("page_width", width);
    model.save_changes();
  });
  return () => {
    playing.stop();
    stopMeasuring();
    forgetButtons();
    projector.stop();
    model.off("change:svg", showPicture);
  };
}

// -- on a projector -------------------------------------------------------------------------

// A button that lets the runs fill the screen, with the sliders above them and nothing else.
// Python lays the picture out for that screen.
function makeProjector(model, el) {
  const stage = () => el.closest(".speclib-stage") ?? el;
  const isOn = () => document.fullscreenElement === stage();
  const heightOf = (selector) => stage().querySelector(selector)?.getBoundingClientRect().height ?? 0;

  const tellScreen = () => {
    const frame = stage();
    const taken = heightOf(".speclib-toolbar") + heightOf(".speclib-player") + PROJECTOR_MARGIN;
    const screen = { width: el.clientWidth, height: Math.max(1, Math.floor(frame.clientHeight - taken)) };
    model.set("screen", isOn() ? screen : {});
    model.save_changes();
  };
  const settle = () => {
    toolbarSize.disconnect();
    const toolbar = stage().querySelector(".speclib-toolbar");
    if (isOn() && toolbar) toolbarSize.observe(toolbar);
    if (isOn() || Object.keys(model.get("screen")).length) setTimeout(tellScreen, REST);
  };
  const toolbarSize = new ResizeObserver(() => setTimeout(tellScreen, REST));   // "More" unfolds
  const change = () => (isOn() ? document.exitFullscreen() : stage().requestFullscreen());
  document.addEventListener("fullscreenchange", settle);
  window.addEventListener("resize", settle);
  return {
    addButtonTo(bar) {
      if (!document.fullscreenEnabled) return;
      const button = addButton(bar, isOn() ? "Small" : "Large", change);
      button.classList.add("projector");
      button.title = "Only the runs, as large as the screen; Esc ends it";
    },
    stop() {
      document.removeEventListener("fullscreenchange", settle);
      window.removeEventListener("resize", settle);
      toolbarSize.disconnect();
    },
  };
}

const PROJECTOR_MARGIN = 38;          // pixels around and between what fills the screen

// -- buttons in the text around -------------------------------------------------------------

// A lesson's text has buttons such as <button disabled value="alpha=1, gamma=5">: they come to
// life when there is a picture whose sliders they can set, and set those of the nearest one.
function liveButtons(model, el) {
  const picture = {
    canSet: (names) => names.every((name) => model.get("settable").includes(name)),
    distance: (button) => Math.abs(middleOf(el) - middleOf(button)),
    set(values) {
      const count = (model.get("asked_values").count ?? 0) + 1;
      model.set("asked_values", { count, values });
      model.save_changes();
      const { top, bottom } = el.getBoundingClientRect();
      const isSeen = bottom > 0 && top < window.innerHeight;
      if (!isSeen) el.scrollIntoView({ block: "nearest" });
    },
  };
  const pictures = (window.speclibPictures ??= new Set());
  pictures.add(picture);
  watchPage("buttons", () => enableButtons(pictures));
  return () => {
    pictures.delete(picture);
    enableButtons(pictures);
  };
}

function middleOf(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return (top + bottom) / 2;
}

function enableButtons(pictures) {
  for (const button of document.querySelectorAll('button[value*="="]')) {
    const pairs = button.value.split(",").map((pair) => pair.split("=").map((part) => part.trim()));
    const values = Object.fromEntries(pairs);
    const able = () => [...pictures].filter((picture) => picture.canSet(Object.keys(values)));
    const isLive = able().length > 0;
    if (button.disabled === isLive) button.disabled = !isLive;
    if (!isLive || button.onclick) continue;
    button.classList.add("speclib-set");
    button.onclick = () => {
      const [nearest] = able().sort((a, b) => a.distance(button) - b.distance(button));
      nearest?.set(values);
    };
  }
}

export default { render };
