// Zooms, plays and explains a timeline.
//
// Python lays out the picture and writes all its text (see picture.py); this file only moves and
// hides elements. All x are pixels along the time axis, from its left end, as Python wrote them. A
// view is { zoom, start }: how many times the axis is stretched, and the x at the left end of the
// visible part. Python puts room.js before this file, in a saved page, too.

const MOST_ZOOM = 40;
const ZOOM_STEP = 1.5;                // of the keys + and -
const WHEEL_PER_ZOOM = 300;           // wheel units that zoom in by a factor of e
const PAN_STEP = 1 / 8;               // of the visible part, by an arrow key
const SECONDS_OF_PLAY = 8;            // for the whole axis, at speed 1
const SPEEDS = [["slow", 0.33], ["normal", 1], ["fast", 3]];
const HINT = "Space plays, ← → step, ↑ ↓ explain a box; Ctrl + wheel zooms, dragging moves, a double click resets";
const KEYS = "Space plays, left and right step, up and down explain a box.";

const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
const setVisible = (node, isVisible) => { node.style.display = isVisible ? "inline" : "none"; };
const numberOf = (node, attribute) => Number(node.getAttribute(attribute));

function addElement(parent, name, className = "", text = "") {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return parent.appendChild(element);
}

function addButton(parent, label, action) {
  const button = addElement(parent, "button", "", label);
  button.type = "button";
  button.addEventListener("click", action);
  return button;
}

// A timeline in `root`: `show(svg, story)` shows a picture and the story that its player tells. The
// reader's zoom and position are kept when another picture is shown.
export function makeTimeline(root) {
  const view = { zoom: 1, start: 0 };
  let plot = null;                              // what moves along the time axis
  const tooltip = makeTooltip(root);
  const player = makePlayer(root, () => plot);
  addElement(root, "div", "speclib-hint", HINT);
  root.tabIndex = 0;
  root.dataset.lmSuppressShortcuts = "true";    // or JupyterLab would take the keys
  root.setAttribute("role", "application");     // so that screen readers pass the keys on
  root.setAttribute("aria-roledescription", "timeline");

  function moveTo(zoom, start) {
    view.zoom = clamp(zoom, 1, MOST_ZOOM);
    view.start = clamp(start, 0, 1 - 1 / view.zoom);
    plot.stretch(view.zoom, view.start * plot.width);
    tooltip.follow();
    player.follow();
  }
  const zoomBy = (factor, share) => {           // the point at this share of the plot does not move
    const zoom = clamp(view.zoom * factor, 1, MOST_ZOOM);
    moveTo(zoom, view.start + share / view.zoom - share / zoom);
  };
  const panBy = (share) => moveTo(view.zoom, view.start + share / view.zoom);
  const reset = () => moveTo(1, 0);
  const explainNext = (direction) => {
    const middle = tooltip.explainNext(plot.svg, direction);
    if (middle < 0 || middle > plot.width) panBy(middle / plot.width - 0.5);
  };

  listenToPointer(root, {
    shareOf: (event) => plot.shareOf(event),
    held: () => view.start,
    drag: (start, share) => moveTo(view.zoom, start - share / view.zoom),
    zoomBy, reset, tooltip,
  });
  listenToKeys(root, {
    " ": player.toggle,
    ArrowRight: () => player.step(1),
    ArrowLeft: () => player.step(-1),
    "Shift+ArrowRight": () => panBy(PAN_STEP),
    "Shift+ArrowLeft": () => panBy(-PAN_STEP),
    ArrowDown: () => explainNext(1),
    ArrowUp: () => explainNext(-1),
    Escape: tooltip.stopExplaining,
    "+": () => zoomBy(ZOOM_STEP, 0.5),
    "-": () => zoomBy(1 / ZOOM_STEP, 0.5),
    0: reset,
  });
  return {
    bar: player.bar,
    stop: player.stop,
    show(svg, story) {
      root.querySelector(":scope > svg")?.remove();
      root.insertAdjacentHTML("afterbegin", svg);
      plot = findPlot(root.querySelector("svg"));
      const names = story.runs.map((run) => run.label).join(", ");
      root.setAttribute("aria-label", `Timeline of ${names}. ${KEYS}`);
      tooltip.stopExplaining();
      player.tell(story);
      if (view.zoom > 1) moveTo(view.zoom, view.start);
    },
  };
}

// -- the parts of the picture that zooming moves --------------------------------------------

// The time axis and all elements along it; `stretch` shows them at another zoom.
function findPlot(svg) {
  const plot = svg.querySelector("svg.plot");
  const width = numberOf(plot, "width");
  const find = (selector, describe) => [...svg.querySelectorAll(selector)].map(describe);
  let zoom = 1;
  let start = 0;
  const pixel = (x) => (x - start) * zoom;

  const boxes = find(".lane rect", (node) => {
    const gap = Number(node.dataset.gap);
    return { node, x: numberOf(node, "x"), gap, width: numberOf(node, "width") + gap };
  });
  const texts = find(".plot text, .ticks text", (node) => ({ node, x: numberOf(node, "x") }));
  const lines = find(".run > line, .ticks line", (node) => ({ node, x: numberOf(node, "x1") }));
  const ticks = find(".ticks *", (node) => ({ node, x: numberOf(node, "x") || numberOf(node, "x1") }));
  const hidden = find("[data-from], [data-until]", (node) => {
    const { from = 0, until = Infinity } = node.dataset;
    return { node, from: Number(from), until: Number(until) };
  });

  return {
    svg: plot, width,
    pixelOf: (share) => pixel(share * width),
    shareOf(event) {                            // the page may show the picture smaller
      const onScreen = plot.getScreenCTM();
      return (event.clientX - onScreen.e) / onScreen.a / width;
    },
    stretch(newZoom, newStart) {
      zoom = newZoom;
      start = newStart;
      for (const { node, x, gap, width: whole } of boxes) {
        node.setAttribute("x", pixel(x));
        node.setAttribute("width", whole * zoom - gap);
      }
      for (const { node, x } of texts) node.setAttribute("x", pixel(x));
      for (const { node, x } of lines) moveLine(node, pixel(x));
      for (const { node, x } of ticks) setVisible(node, Math.abs(pixel(x) / width - 0.5) < 0.501);
      for (const { node, from, until } of hidden) setVisible(node, zoom >= from && zoom < until);
    },
  };
}

function moveLine(line, x) {
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
}

// -- tooltips -------------------------------------------------------------------------------

// Explains the element under the pointer, or else the box that was selected with the keys.
function makeTooltip(root) {
  const tooltip = addElement(root, "div", "speclib-tip");
  tooltip.setAttribute("role", "status");       // read aloud when a key asks for it
  tooltip.hidden = true;
  const texts = new WeakMap();
  let explained = null;                         // the box that was selected with the keys
  let filled = null;

  const textOf = (element) => {
    const title = element.querySelector(":scope > title");
    if (title) {
      texts.set(element, title.textContent);
      title.remove();                           // or the browser would show its own tooltip
    }
    return texts.get(element);
  };
  const fill = (text) => {
    if (text === filled) return;                // or it would be read aloud again
    filled = text;
    const [heading, ...lines] = text.split("\n");
    tooltip.replaceChildren();
    addElement(tooltip, "b", "", heading);
    for (const line of lines) addElement(tooltip, "div", "", line);
  };
  const showNextTo = (element, clientX = element.getBoundingClientRect().left) => {
    tooltip.hidden = false;
    fill(textOf(element));
    const frame = root.getBoundingClientRect();
    const box = element.getBoundingClientRect();
    const left = Math.min(clientX - frame.left + 14, frame.width - tooltip.offsetWidth - 4);
    const below = box.bottom - frame.top + 6;
    const above = box.top - frame.top - tooltip.offsetHeight - 6;
    tooltip.style.left = `${Math.max(0, left)}px`;
    tooltip.style.top = `${below + tooltip.offsetHeight <= frame.height ? below : above}px`;
  };
  const follow = () => {
    if (explained) showNextTo(explained);
    else tooltip.hidden = true;
  };

  return {
    follow,
    point(event) {
      const hasText = event.type !== "pointerleave" && textOf(event.target);
      if (hasText) showNextTo(event.target, event.clientX);
      else follow();
    },
    // Explains the next or previous box, and returns the x of its middle.
    explainNext(plot, direction) {
      const boxes = [...plot.querySelectorAll(".lane rect")].filter(textOf);
      const before = direction > 0 ? -1 : 0;    // so that the first or last box comes next
      const here = explained ? boxes.indexOf(explained) : before;
      explained?.classList.remove("explained");
      explained = boxes.at((here + direction) % boxes.length);
      explained.classList.add("explained");
      showNextTo(explained);
      return numberOf(explained, "x") + numberOf(explained, "width") / 2;
    },
    stopExplaining() {
      explained?.classList.remove("explained");
      explained = null;
      follow();
    },
  };
}

// -- what a reader does ---------------------------------------------------------------------

function listenToPointer(root, { shareOf, held, drag, zoomBy, reset, tooltip }) {
  const isOnPlot = (event) => event.target.closest("svg") && Math.abs(shareOf(event) - 0.5) <= 0.5;
  let grip = null;                              // where and in which view a drag began
  const letGo = () => { grip = null; };
  root.addEventListener("pointerdown", (event) => {
    if (event.button || !isOnPlot(event)) return;
    grip = { share: shareOf(event), start: held() };
    event.target.setPointerCapture(event.pointerId);
  });
  root.addEventListener("pointermove", (event) => {
    if (grip) drag(grip.start, shareOf(event) - grip.share);
    else tooltip.point(event);
  });
  root.addEventListener("pointerup", letGo);
  root.addEventListener("pointercancel", letGo);
  root.addEventListener("pointerleave", tooltip.point);
  root.addEventListener("dblclick", (event) => { if (isOnPlot(event)) reset(); });
  root.addEventListener("wheel", (event) => {
    const isZoom = event.ctrlKey || event.metaKey || event.altKey;
    if (!isZoom || !isOnPlot(event)) return;    // a plain wheel scrolls the page
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY / WHEEL_PER_ZOOM), shareOf(event));
  }, { passive: false });
}

function listenToKeys(root, actions) {
  root.addEventListener("keydown", (event) => {
    const isArrow = event.key.startsWith("Arrow");
    const action = actions[isArrow && event.shiftKey ? `Shift+${event.key}` : event.key];
    const isForOthers = event.ctrlKey || event.altKey || event.metaKey;
    const isFormField = ["BUTTON", "SELECT"].includes(event.target.tagName);
    if (!action || isForOthers || isFormField) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
}

// -- the player -----------------------------------------------------------------------------

// A cursor that moves along the axis, the text of each run so far, and a sentence about the last
// commit. The part after the cursor is faded.
//
// A story has runs, each with a label and moments of [share of the axis, text so far, sentence].
function makePlayer(root, plotNow) {
  const bar = addElement(root, "div", "speclib-player");
  const button = addButton(bar, "▶ Play", () => toggle());
  addButton(bar, "◀ Step", () => step(-1));
  addButton(bar, "Step ▶", () => step(1));
  const speed = addElement(bar, "select");
  speed.setAttribute("aria-label", "speed of the player");
  for (const [name, value] of SPEEDS) speed.add(new Option(name, value));
  speed.value = 1;
  const sentence = addElement(root, "div", "speclib-sentence");
  sentence.setAttribute("role", "status");      // read aloud whenever it changes
  const texts = addElement(root, "div");

  let runs = [];
  let shares = [];                              // of all moments, in order
  let now = null;                               // the cursor's position, as a share of the axis
  let frame = null;                             // of the running animation

  function tell(story) {
    runs = story.runs;
    const moments = runs.flatMap((run) => run.moments);
    shares = [...new Set(moments.map(([share]) => share))].sort((a, b) => a - b);
    texts.replaceChildren();
    for (const { label } of runs) {
      const line = addElement(texts, "div", "speclib-text");
      addElement(line, "div", "speclib-text-name", label);
      addElement(line, "code");                 // monospaced, so that the runs' columns line up
    }
    follow();
  }
  function follow() {
    const plot = plotNow();
    const [veil, cursor] = [".veil", ".cursor"].map((name) => plot.svg.querySelector(name));
    for (const node of [veil, cursor]) setVisible(node, now !== null);
    texts.hidden = now === null;
    if (now === null) return;
    const x = plot.pixelOf(now);
    moveLine(cursor, x);
    veil.setAttribute("x", x);
    veil.setAttribute("width", Math.max(0, plot.width - x));

    let last = [-1, "", "Nothing is written yet."];
    runs.forEach((run, number) => {
      const past = run.moments.findLast(([share]) => share <= now + 1e-9);
      texts.children[number].lastChild.textContent = past ? past[1] : "";
      if (past && past[0] >= last[0]) last = past;
    });
    if (sentence.textContent !== last[2]) sentence.textContent = last[2];
  }
  function moveTo(share) {
    now = clamp(share, 0, shares.at(-1) ?? 0);
    follow();
  }
  function toggle() {
    if (frame !== null) return stop();
    if (now === null || now >= shares.at(-1)) moveTo(0);
    button.textContent = "❚❚ Pause";
    let before = performance.now();
    const tick = (time) => {
      moveTo(now + (time - before) / 1000 / SECONDS_OF_PLAY * Number(speed.value));
      before = time;
      if (now < (shares.at(-1) ?? 0)) frame = requestAnimationFrame(tick);
      else stop();
    };
    frame = requestAnimationFrame(tick);
  }
  function stop() {
    cancelAnimationFrame(frame);
    frame = null;
    button.textContent = "▶ Play";
  }
  function step(direction) {
    stop();
    const next = direction > 0
      ? shares.find((share) => share > (now ?? 0) + 1e-9)
      : shares.findLast((share) => share < (now ?? 0) - 1e-9) ?? 0;
    moveTo(next ?? Infinity);
  }
  return { bar, tell, follow, toggle, step, stop };
}

// The widget in a notebook: what anywidget calls for each output that shows it.
function render({ model, el }) {
  const root = addElement(el, "div", "speclib-timeline");
  const timeline = makeTimeline(root);
  const show = () => timeline.show(model.get("svg"), model.get("story"));
  model.on("change:svg", show);
  show();
  nameSliders();
  const tell = (name) => (value) => {
    if (model.get(name) === value) return;
    model.set(name, value);
    model.save_changes();
  };
  const forgetButton = addLargeButton(timeline.bar, root, tell("is_large"));
  const stopMeasuring = measureWidth(el, tell("page_width"));
  return () => {
    timeline.stop();
    forgetButton();
    stopMeasuring();
    model.off("change:svg", show);
  };
}

export default { render };
