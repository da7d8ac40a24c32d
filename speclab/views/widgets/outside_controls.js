// Sets an explorer's sliders from outside, with buttons in a lesson's text and with the key R.
//
// A button such as <button disabled value="alpha=1, gamma=5"> is enabled when the page has an
// explorer with the sliders that it sets; it sets the nearest such explorer. Python prepends
// room.js to this file.

function render({ model, el }) {
  const explorer = {
    stage: () => el.closest(".widget-vbox"),
    canSet: (names) => names.every((name) => model.get("settable").includes(name)),
    set(values) {
      const count = (model.get("asked_values").count ?? 0) + 1;
      model.set("asked_values", { count, values });
      model.save_changes();
      const { top, bottom } = this.stage().getBoundingClientRect();
      const isSeen = bottom > 0 && top < window.innerHeight;
      if (!isSeen) this.stage().scrollIntoView({ block: "nearest" });
    },
  };
  const explorers = (window.speclibExplorers ??= new Set());
  explorers.add(explorer);
  watchPage("buttons", () => enableButtons(explorers));

  const onKey = (event) => {
    const isR = event.key.toLowerCase() === "r" && !event.ctrlKey && !event.metaKey;
    if (!isR || !explorer.stage()?.contains(event.target)) return;
    event.preventDefault();
    event.stopPropagation();
    model.set("asked_redraws", model.get("asked_redraws") + 1);
    model.save_changes();
  };
  document.addEventListener("keydown", onKey, true);
  return () => {
    document.removeEventListener("keydown", onKey, true);
    explorers.delete(explorer);
    enableButtons(explorers);
  };
}

function middleOf(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return (top + bottom) / 2;
}

function enableButtons(explorers) {
  for (const button of document.querySelectorAll('button[value*="="]')) {
    const pairs = button.value.split(",").map((pair) => pair.split("=").map((part) => part.trim()));
    const values = Object.fromEntries(pairs);
    const able = () => [...explorers].filter((explorer) => explorer.canSet(Object.keys(values)));
    const distance = (explorer) => Math.abs(middleOf(explorer.stage()) - middleOf(button));
    const isLive = able().length > 0;
    if (button.disabled === isLive) button.disabled = !isLive;
    if (!isLive || button.onclick) continue;
    button.classList.add("speclib-set");
    button.onclick = () => {
      const [nearest] = able().sort((a, b) => distance(a) - distance(b));
      nearest?.set(values);
    };
  }
}

export default { render };
