// A picture that Python draws, and that a reader can drag and control with keys.
//
// Python sends SVG. Elements with `data-handle` can be dragged, or moved with the arrow keys
// when they have focus; each action is sent to Python, which redraws the picture. Other keys
// are sent too, so that Space or R can act on the picture as a whole. Screen readers read
// `spoken` aloud whenever it changes. Python prepends room.js to this file.
//
// While Python draws, the script counts key presses and keeps the last position of a drag. It
// sends both once Python confirms the previous actions (`answered`).

const KEYS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", " ", "r", "R", "Home", "End"];

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "speclib-live";
  root.tabIndex = 0;
  root.setAttribute("role", "application");    // so that it receives key presses
  root.setAttribute("aria-label", model.get("name"));
  root.dataset.lmSuppressShortcuts = "true";   // otherwise JupyterLab would take the keys
  const picture = document.createElement("div");
  const voice = document.createElement("div");
  voice.className = "speclib-voice";
  voice.setAttribute("role", "status");
  root.append(picture, voice);
  el.append(root);
  const stopProjector = addLargeButton(root, root);
  let held = null;                    // the handle that is being dragged

  let waiting = [];                   // actions not sent yet

  const tell = (happened) => {
    const last = waiting.at(-1);
    const isSame = ["kind", "handle", "key"].every((part) => last?.[part] === happened[part]);
    if (!isSame) waiting.push({ ...happened, times: 1 });
    else if (happened.kind === "key") last.times += 1;
    else Object.assign(last, happened);
    sendWaiting();
  };
  const sendWaiting = () => {
    const sent = model.get("happened").count ?? 0;
    if (!waiting.length || model.get("answered") < sent) return;
    model.set("happened", { count: sent + 1, actions: waiting });
    model.save_changes();
    waiting = [];
  };

  const show = () => {
    const focused = document.activeElement?.dataset?.handle;
    picture.innerHTML = model.get("svg");
    for (const handle of picture.querySelectorAll("[data-handle]")) {
      handle.setAttribute("tabindex", "0");
      handle.setAttribute("role", "slider");
    }
    if (focused && root.contains(picture)) {
      picture.querySelector(`[data-handle="${focused}"]`)?.focus({ preventScroll: true });
    }
  };
  const speak = () => { voice.textContent = model.get("spoken"); };

  const pointOf = (event) => {
    const svg = picture.querySelector("svg");
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
  };
  root.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest?.("[data-handle]");
    if (!handle || event.button) return;
    held = handle.dataset.handle;
    root.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  root.addEventListener("pointermove", (event) => {
    if (held) tell({ kind: "drag", handle: held, ...pointOf(event) });
  });
  const letGo = () => { held = null; };
  root.addEventListener("pointerup", letGo);
  root.addEventListener("pointercancel", letGo);
  root.addEventListener("keydown", (event) => {
    if (!KEYS.includes(event.key) || event.target.closest("button")) return;
    event.preventDefault();
    event.stopPropagation();
    tell({ kind: "key", handle: event.target.dataset?.handle ?? "", key: event.key });
  });

  model.on("change:svg", show);
  model.on("change:spoken", speak);
  model.on("change:answered", sendWaiting);
  show();
  nameSliders();
  const stopMeasuring = measureWidth(el, (width) => {
    model.set("page_width", width);
    model.save_changes();
  });
  return () => {
    stopProjector();
    stopMeasuring();
    model.off("change:svg", show);
    model.off("change:spoken", speak);
    model.off("change:answered", sendWaiting);
  };
}

export default { render };
