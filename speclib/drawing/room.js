// What pictures need from the page around them: its width, names for its sliders, and full screen.
// Python puts this before the scripts of the widgets.

const LEAST_CHANGE = 8;               // pixels: a smaller change in width causes no new layout
const REST = 120;                     // milliseconds without a change: then the page has settled

// Calls `tell` with the width in pixels that `element` has for a picture, and again when the window
// has changed and settled. Returns a function that stops this.
function measureWidth(element, tell) {
  let told = 0;
  let timer = null;
  const observer = new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const width = Math.floor(element.getBoundingClientRect().width);
      if (width === 0 || Math.abs(width - told) < LEAST_CHANGE) return;
      told = width;
      tell(width);
    }, REST);
  });
  observer.observe(element);
  return () => {
    clearTimeout(timer);
    observer.disconnect();
  };
}

// Runs `work` now and after each change of the page, once the page has settled. All pictures on a
// page share one observer per name.
function watchPage(name, work) {
  work();
  const watches = (window.speclibWatches ??= {});
  if (watches[name]) return;
  let timer = null;
  watches[name] = new MutationObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(work, REST);
  });
  watches[name].observe(document.body, { childList: true, subtree: true });
}

// Names every slider on the page by its label, for screen readers.
function nameSliders() {
  watchPage("sliders", () => {
    for (const handle of document.querySelectorAll(".widget-slider [role=slider]")) {
      const slider = handle.closest(".widget-slider");
      const name = slider.querySelector(".widget-label")?.textContent.trim();
      if (name && handle.getAttribute("aria-label") !== name) handle.setAttribute("aria-label", name);
    }
  });
}

// For a projector: adds a button to `parent` that lets the picture `root` and its sliders fill the
// screen, and calls `tell` with whether they do. Returns a function that stops listening.
function addLargeButton(parent, root, tell = () => {}) {
  if (!document.fullscreenEnabled) return () => {};
  const stage = () => root.closest(".widget-vbox") ?? root;
  const isOn = () => document.fullscreenElement === stage();
  const button = document.createElement("button");
  button.type = "button";
  button.className = "speclib-large";
  button.title = "Show only this picture, on the full screen; Esc closes it";
  const label = () => {
    button.textContent = isOn() ? "Small" : "Large";
    tell(isOn());
  };
  button.onclick = () => (isOn() ? document.exitFullscreen() : stage().requestFullscreen());
  document.addEventListener("fullscreenchange", label);
  label();
  parent.append(button);
  return () => document.removeEventListener("fullscreenchange", label);
}
