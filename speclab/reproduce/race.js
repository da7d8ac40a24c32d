// A race on a page without Python. The slider chooses among timelines drawn beforehand,
// pictures[alpha] = [svg, story]. race.py appends this to the timeline's own script.
function showRace(figure, pictures, first) {
  const stops = Object.keys(pictures).sort((a, b) => a - b);
  const slider = figure.querySelector("input");
  const timeline = makeTimeline(figure.querySelector(".speclib-timeline"));
  const show = (alpha) => {
    slider.value = stops.indexOf(alpha);
    slider.setAttribute("aria-valuetext", alpha);
    figure.querySelector("output").textContent = alpha;
    timeline.show(...pictures[alpha]);
  };
  slider.max = stops.length - 1;
  slider.addEventListener("input", () => show(stops[slider.value]));
  show(first);

  // A button in the lesson's text, such as <button disabled value="alpha=1">, moves the slider.
  for (const alpha of stops) {
    for (const button of document.querySelectorAll(`button[value="alpha=${alpha}"]`)) {
      button.disabled = false;
      button.addEventListener("click", () => {
        show(alpha);
        figure.scrollIntoView({ block: "nearest" });
      });
    }
  }
}
