
// -- a race on a page without Python --------------------------------------------------------

// Python drew a timeline for every stop of the dials and put them here as JSON, packed by gzip (see
// race.py). This shows the one that the dials choose.
const DRAWS = "Which words the draft model gets right is drawn at random. All numbers are virtual: "
  + "the methods' own code, on a simulated clock.";

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const unzipped = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(unzipped).text());
}

function addDial(parent, dial, whenMoved) {
  const label = addElement(parent, "label", "", dial.label);
  const value = addElement(label, "output");
  const slider = addElement(label, "input");
  Object.assign(slider, { type: "range", min: 0, max: dial.stops.length - 1, step: 1 });
  const stop = () => dial.stops[Number(slider.value)];
  const say = () => {
    value.textContent = stop();
    slider.setAttribute("aria-valuetext", stop());
  };
  const choose = (wanted) => {
    slider.value = dial.stops.indexOf(wanted);
    say();
  };
  slider.addEventListener("input", () => { say(); whenMoved(); });
  choose(dial.first);
  return { name: dial.name, stops: dial.stops, stop, choose };
}

function mountRace(root, { dials, pictures }) {
  addElement(root, "p", "title", root.dataset.title);
  const bar = addElement(root, "div", "dials");
  const show = () => timeline.show(...pictures[controls.map((dial) => dial.stop()).join(",")]);
  const controls = dials.map((dial) => addDial(bar, dial, show));
  const timeline = makeTimeline(addElement(root, "div", "speclib-timeline"));
  addElement(root, "p", "draws", DRAWS);
  show();

  // Values in the lesson's text, as in <button disabled value="alpha=1, c=5">, set the dials if there
  // is a picture of them.
  for (const button of document.querySelectorAll(".text button[value*='=']")) {
    const pairs = button.value.split(",").map((pair) => pair.trim().split("="));
    const wanted = pairs.map(([name, value]) => [controls.find((dial) => dial.name === name), Number(value)]);
    if (!wanted.every(([dial, value]) => dial?.stops.includes(value))) continue;
    button.disabled = false;
    button.addEventListener("click", () => {
      for (const [dial, value] of wanted) dial.choose(value);
      show();
      root.scrollIntoView({ block: "nearest" });
    });
  }
  root.querySelector("noscript")?.remove();
  root.dataset.ready = "yes";
  performance.mark("picture");                  // how soon a reader sees it
}

const race = document.getElementById("race");
unpack(document.getElementById("race-data").textContent).then((data) => mountRace(race, data));
