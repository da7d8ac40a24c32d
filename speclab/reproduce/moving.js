// A timeline that moves without Python: the widget's own module, with a model whose pictures were
// drawn beforehand. site.py puts the module before this, and `data` behind it:
// data[alpha] = { story, pictures: { width: svg } }.

// What anywidget gives a module, as far as the timeline asks for it.
function makeModel(values, answer) {
  const listeners = new Map();
  const model = {
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
      answer(model, name, value);
    },
    save_changes() {},
    on: (event, call) => listeners.set(event, [...(listeners.get(event) ?? []), call]),
    off: (event, call) =>
      listeners.set(event, (listeners.get(event) ?? []).filter((other) => other !== call)),
    tell: (event) => (listeners.get(event) ?? []).forEach((call) => call()),
  };
  return model;
}

function showMoving(figure, data, first) {
  const stops = Object.keys(data).sort((a, b) => a - b);
  const slider = figure.querySelector("input");
  const output = figure.querySelector("output");
  slider.max = stops.length - 1;
  slider.value = stops.indexOf(first);

  const picture = (width) => {
    const { pictures } = data[stops[slider.value]];
    const widths = Object.keys(pictures).sort((a, b) => b - a);
    return pictures[widths.find((each) => each <= width) ?? widths.at(-1)];
  };
  const show = (model) => {
    const values = { svg: picture(model.get("page_width")), story: data[stops[slider.value]].story };
    output.textContent = stops[slider.value];
    if (values.svg === model.get("svg")) return;
    model.set("story", values.story);
    model.set("svg", values.svg);
    model.tell("change:svg");
  };
  const model = makeModel(
    {
      svg: picture(figure.clientWidth), story: data[first].story, page_width: figure.clientWidth,
      screen: {}, settable: ["alpha"], asked_values: {}, asked_anew: 0,
    },
    (changed, name, value) => {
      if (name === "page_width") show(changed);
      if (name !== "asked_values") return;
      const distance = (stop) => Math.abs(stop - value.values.alpha);
      slider.value = stops.indexOf([...stops].sort((a, b) => distance(a) - distance(b))[0]);
      show(changed);
    },
  );
  slider.addEventListener("input", () => show(model));
  output.textContent = first;
  render({ model, el: figure.querySelector(".speclib-stage") });
}
