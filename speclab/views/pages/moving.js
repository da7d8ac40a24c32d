// Runs that move on a page: a race of methods, or the rounds of one method.
//
// Python computed the runs before the page was written, at the stops of every dial, and put them
// here as JSON, packed by gzip (see moving_runs.py). This script shows those of one setting at a
// time. Every bar, number and sentence is read off the same runs; it computes none, and knows no
// method. All times are milliseconds.

const OUTCOMES = { a: "accepted", r: "rejected", d: "discarded" };
const WRITERS = { d: "draft", t: "target", c: "target" };
const SECONDS_OF_RACE = 7;
const SECONDS_OF_ROUND = 2.5;
const SOON = 1e-6;                    // milliseconds within which two times are the same
const TICKS = 5;                      // labels of the axis, at most
const glides = !matchMedia("(prefers-reduced-motion: reduce)").matches;

for (const root of document.querySelectorAll(".moving")) {
  if (!window.DecompressionStream) root.textContent = "These runs move in browsers of 2023 or later.";
  else unpack(document.getElementById(root.dataset.runs).textContent).then((data) => mount(root, data));
}

// Values in the lesson's text, as in <button disabled value="alpha=1, gamma=5">, set the dials of a
// race on the page, if it has all of them.
function listenToText(root, data, chooseAll) {
  for (const button of document.querySelectorAll(".text button[value*='=']")) {
    const pairs = button.value.split(",").map((pair) => pair.trim().split("="));
    const wanted = pairs.map(([name, value]) => [data.dials.find((dial) => dial.name === name), Number(value)]);
    if (!wanted.every(([dial, value]) => dial && Number.isFinite(value))) continue;
    button.disabled = false;
    button.addEventListener("click", () => {
      chooseAll(wanted);
      root.scrollIntoView({ block: "nearest", behavior: glides ? "smooth" : "auto" });
    });
  }
}

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const unzipped = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(unzipped).text());
}

// -- the runs ---------------------------------------------------------------------------------

// A run as objects: `boxes` are what devices did, `commits` what was written at the end of a round.
function readRun(data, number) {
  const wordsOf = (letters) => [...letters].map((letter) => data.words[data.letters.indexOf(letter)]);
  const [label, note, lanes, boxes, commits] = data.runs[number];
  return {
    label, note, lanes,
    boxes: boxes.map(([lane, round, start, lasts, letters, outcomes, leftOut = 0]) => ({
      lane, round, start, lasts, leftOut, words: wordsOf(letters),
      outcomes: [...outcomes].map((letter) => OUTCOMES[letter]), isDraft: outcomes !== "",
    })),
    commits: commits.map(([round, end, letters, writers]) => (
      { round, end, words: wordsOf(letters), writers })),
  };
}

// After the last pass an answer may still be under way.
const endOf = (run) => (
  Math.max(run.commits.at(-1).end, ...run.boxes.map((box) => box.start + box.lasts)));
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

// What is said of a whole run; `plain` is the run that it is compared with.
function figuresOf(run, plain) {
  const outcomes = run.boxes.flatMap((box) => box.outcomes);
  const count = (kind) => outcomes.filter((outcome) => outcome === kind).length;
  const leftOut = sum(run.boxes.map((box) => box.leftOut));    // branches that nobody followed
  const makespan = endOf(run);
  const roles = new Map();                      // several servers of the target count as one
  run.lanes.forEach((name, lane) => {
    const busy = sum(run.boxes.filter((box) => box.lane === lane).map((box) => box.lasts));
    const role = name.split("-")[0];
    roles.set(role, [...(roles.get(role) ?? []), 1 - busy / makespan]);
  });
  const waits = [...roles].map(([name, shares]) => ({ name, share: sum(shares) / shares.length }));
  const written = run.commits.at(-1).end;
  return {
    written, waits, makespan,
    tokens: sum(run.commits.map((commit) => commit.words.length)),
    speedup: plain.commits.at(-1).end / written,
    accepted: count("accepted"), rejected: count("rejected"), discarded: count("discarded") + leftOut,
    drafted: outcomes.length + leftOut,
  };
}

const times = (factor) => `${factor.toFixed(2)} times`;
const share = (value) => `${Math.round(100 * value)}\u00a0%`;
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

function factsOf(figures) {
  const facts = [`${figures.tokens} tokens in ${Number(figures.written.toFixed(1))} ms`];
  if (figures.drafted) {
    facts.push(`${figures.accepted} of ${figures.accepted + figures.rejected} tested drafts accepted`);
    facts.push(`${figures.discarded} discarded untested`);
  }
  facts.push(`waiting: ${figures.waits.map(({ name, share: part }) => `${name} ${share(part)}`).join(", ")}`);
  return facts.join(" · ");
}

function captionOf(shown) {
  const sentences = shown.slice(1).map(({ run, figures, expected }) => {
    const ofLongText = expected === null ? "" : ` (expected of a long text: ${expected.toFixed(2)})`;
    return `${run.label} is here ${times(figures.speedup)} as fast as plain decoding${ofLongText}.`;
  });
  return sentences.join(" ");
}

// What a commit means, in words.
function sentenceOf(run, commit) {
  const drafts = [...commit.writers].filter((writer) => writer === "d").length;
  const phrases = drafts ? [`${plural(drafts, "draft")} accepted`] : [];
  [...commit.writers].forEach((writer, place) => {
    const word = `“${commit.words[place]}”`;
    if (writer === "c") phrases.push(`corrected to ${word}`);
    if (writer === "t") phrases.push(`the target model wrote ${word}`);
  });
  return `${run.label}, round ${commit.round + 1}: ${phrases.join(", ") || "nothing is certain yet"}.`;
}

// A round of a run in which both models work at once. `window` are the drafts that waited for this
// pass, each with what became of it; `early` is the first new draft, which the pass's last row tests,
// and missing at the end of a text, where nothing is drafted any more.
function roundsOf(run) {
  const ofRound = (number, isDraft) => (
    run.boxes.find((box) => box.round === number && box.isDraft === isDraft));
  return run.commits.map((commit) => {
    const pass = ofRound(commit.round, false);
    const drafting = ofRound(commit.round, true);
    const before = ofRound(commit.round - 1, true);
    const count = pass.words.length;
    const window = pass.words.map((word, place) => (
      { word, outcome: before.outcomes.slice(-count)[place] }));
    const drafts = (drafting?.words ?? []).map((word, place) => (
      { word, outcome: drafting.outcomes[place] }));
    const start = Math.min(pass.start, drafting?.start ?? pass.start);
    const early = drafts[0];
    const rejected = [...window, ...drafts.slice(0, 1)].find((draft) => draft.outcome === "rejected");
    return { commit, start, end: commit.end, window, drafts, early, rejected };
  });
}

// -- elements ---------------------------------------------------------------------------------

function element(name, className = "", text = "") {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.textContent = text;
  return node;
}

function add(parent, name, className, text) {
  return parent.appendChild(element(name, className, text));
}

function addButton(parent, text, action) {
  const button = add(parent, "button", "", text);
  button.type = "button";
  button.addEventListener("click", action);
  return button;
}

function addDial(parent, dial, choose) {
  const label = add(parent, "label");
  const words = add(label, "span", "", dial.label);
  const value = add(words, "output");
  const slider = add(label, "input");
  Object.assign(slider, { type: "range", min: dial.low, max: dial.high, step: dial.step });
  slider.addEventListener("input", () => choose(dial, Number(slider.value)));
  return { show: (number) => { slider.value = number; value.textContent = ` ${number}`; } };
}

const hasAllStops = (dial) => (
  dial.stops.length === 1 + Math.round((dial.high - dial.low) / dial.step));

// -- the picture ------------------------------------------------------------------------------

// Lanes with boxes along an axis of `span` milliseconds, in shares of the width: so the browser
// lays them out anew for every screen.
function addLanes(parent, run, span) {
  const percent = (value) => `${100 * value / span}%`;
  const place = (node, start, lasts) => {
    node.style.left = percent(start);
    node.style.width = percent(lasts);
  };
  const makespan = endOf(run);
  const track = add(parent, "div", "lanes");
  run.lanes.forEach((name, lane) => {
    const row = add(track, "div", "lane");
    add(row, "span", "name", name);
    const boxes = add(row, "div", "boxes");
    place(add(boxes, "i", "idle"), 0, makespan);
    for (const box of run.boxes.filter((other) => other.lane === lane)) {
      if (!box.isDraft) place(add(boxes, "i", "score", box.words.join(" ")), box.start, box.lasts);
      box.outcomes.forEach((outcome, number) => {
        const lasts = box.lasts / box.words.length;
        place(add(boxes, "i", outcome, box.words[number]), box.start + number * lasts, lasts);
      });
    }
  });
  const over = add(track, "div", "over");       // as wide as the boxes
  const ring = add(over, "i", "ring");
  const veil = add(over, "i", "veil");
  return {
    moveTo(now) { veil.style.left = percent(Math.min(now, span)); },
    markRound(start, end) { place(ring, start, end - start); },
  };
}

// Labels stay where they fit into half of a lane's boxes; a few alone would be stray words.
function hideNarrowLabels(stage) {
  for (const lane of stage.querySelectorAll(".boxes")) {
    const labelled = [...lane.children].filter((box) => box.textContent);
    const fitting = labelled.filter((box) => box.scrollWidth <= box.clientWidth);
    const isLabelled = 2 * fitting.length >= labelled.length;
    for (const box of labelled) box.classList.toggle("bare", !isLabelled || !fitting.includes(box));
  }
}

function addAxis(parent, span) {
  const axis = add(add(parent, "div", "lane axis"), "div", "boxes");
  const rough = span / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough);
  for (let at = 0; at <= span; at += step) {
    const tick = add(axis, "span", "tick", `${Number(at.toFixed(3))}${at ? "" : " ms"}`);
    if (at < span * 0.85) tick.style.left = `${100 * at / span}%`;
    else tick.style.right = `${100 - 100 * at / span}%`;    // or its label would leave the picture
  }
}

// The text of a run. All of it takes its place at once, and what is not written yet is hidden.
function addText(parent, run) {
  const line = add(parent, "p", "written");
  const words = run.commits.flatMap((commit) => commit.words.map((word, place) => {
    const node = add(line, "span", WRITERS[commit.writers[place]], word);
    line.append(" ");
    return { node, end: commit.end };
  }));
  return (now) => {
    for (const { node, end } of words) node.classList.toggle("ahead", end > now + SOON);
  };
}

const LEGEND = [["score", "target pass"], ["accepted", "draft: accepted"], ["rejected", "rejected"],
  ["discarded", "discarded untested"], ["idle", "waiting"]];

function addLegend(parent) {
  const legend = add(parent, "p", "legend");
  for (const [kind, meaning] of LEGEND) {
    const entry = add(legend, "span");
    add(entry, "i", kind);
    entry.append(meaning);
  }
  for (const [writer, meaning] of [["draft", "text by the draft model"], ["target", "by the target model"]]) {
    add(add(legend, "span"), "span", writer, meaning);
  }
}

// -- two ways to show runs --------------------------------------------------------------------

// All runs of a setting on one time axis.
const race = {
  secondsOf: () => SECONDS_OF_RACE,
  chosen: (shown) => shown,
  caption: captionOf,
  draw(stage, shown, span) {
    const moves = [];
    for (const { run, figures } of shown) {
      const panel = add(stage, "section", "run");
      const head = add(panel, "div", "head");
      add(head, "b", "", run.label);
      add(head, "span", "note", run.note);
      if (figures.drafted) add(head, "b", "speed", `${figures.speedup.toFixed(2)}× plain`);
      const lanes = addLanes(panel, run, span);
      moves.push(lanes.moveTo, addText(panel, run));
      add(panel, "p", "facts", factsOf(figures));
    }
    addAxis(stage, span);
    return (now) => {
      for (const move of moves) move(now);
      return lastSaid(shown, now);
    };
  },
};

function lastSaid(shown, now) {
  const texts = shown.map(({ run }) => run.commits.flatMap((commit) => commit.words).join(" "));
  const isOver = shown.every(({ figures }) => figures.written <= now + SOON);
  if (isOver && new Set(texts).size === 1) return "All are done, and all have written the same text.";
  let said = "Nothing is written yet.";
  let latest = -1;
  for (const { run } of shown) {
    const commit = run.commits.findLast((other) => other.end <= now + SOON);
    if (commit && commit.end >= latest) {
      latest = commit.end;
      said = sentenceOf(run, commit);
    }
  }
  return said;
}

// The last run of a setting, one round at a time.
const rounds = {
  secondsOf: ([{ run }]) => SECONDS_OF_ROUND * run.commits.length,
  chosen: (shown) => shown.slice(-1),
  caption: () => "",
  draw(stage, [{ run }], span) {
    const all = roundsOf(run);
    const above = add(stage, "div", "round");
    const lanes = addLanes(add(stage, "section", "run"), run, span);
    addAxis(stage, span);
    let drawn = null;
    return (now) => {
      const round = all.find((other) => other.end >= now - SOON) ?? all.at(-1);
      lanes.moveTo(round.end);
      lanes.markRound(round.start, round.end);
      if (round !== drawn) drawRound(above, all, round);
      drawn = round;
      return sayRound(round, all);
    };
  },
};

function sayRound(round, all) {
  const { window, early, rejected, drafts } = round;
  const isLast = round === all.at(-1);
  const name = window.length ? "post-verify" : "pre-verify";
  const tested = [...window, ...drafts.slice(0, 1)].filter((draft) => draft.outcome !== "discarded");
  const accepted = tested.filter((draft) => draft.outcome === "accepted").length;
  let next = `${plural(drafts.length - 1, "draft")} wait in the next window.`;
  if (rejected) next = `“${rejected.word}” is rejected, so the next window is empty.`;
  if (isLast) next = "The text is complete.";
  return `Round ${round.commit.round + 1} of ${all.length}, ${name}: the pass gives `
    + `${plural(window.length + 1, "row")}; ${accepted} of ${plural(tested.length, "tested draft")} accepted. ${next}`;
}

function drawRound(box, all, round) {
  box.replaceChildren();
  const { window, drafts, early, commit, rejected } = round;
  const isLast = round === all.at(-1);
  const rows = window.length + 1;

  const before = all.slice(0, all.indexOf(round)).flatMap((other) => other.commit.words);
  add(box, "p", "before", before.length ? `Text so far: … ${before.slice(-8).join(" ")}` : "Text so far: empty");

  const target = addPanel(box, "target", window.length
    ? `The target model reads the window, ${plural(window.length, "draft")}: its pass gives ${rows} rows`
    : "The window is empty: the target model reads the text, and its pass gives 1 row");
  if (window.length) {
    const ring = add(target, "div", "window");
    add(ring, "span", "tag", "window");
    window.forEach((draft, place) => addChip(ring, draft, rowOf(place + 1, draft)));
  }
  if (early) addChip(target, early, rowOf(rows, early), "early");

  const writing = addPanel(box, "draft", "At the same time the draft model writes");
  drafts.forEach((draft, place) => {
    if (place === 0) addChip(writing, early, rowOf(rows, early), "early");
    else if (isLast) addChip(writing, { word: draft.word, outcome: "waits" }, "not needed");
    else if (rejected) addChip(writing, { word: draft.word, outcome: "discarded" }, "");
    else addChip(writing, { word: draft.word, outcome: "waits" }, "next window");
  });

  const result = addPanel(box, "result", "Written in this round");
  commit.words.forEach((word, place) => {
    const writer = WRITERS[commit.writers[place]];
    add(result, "span", writer, commit.writers[place] === "c" ? `${word} (in place of ${rejected.word})` : word);
  });
}

// After a rejection the text goes another way, and further rows are of no use.
const rowOf = (number, draft) => `row ${number}${draft.outcome === "discarded" ? ": no use" : " tests it"}`;

const BECAME = { accepted: "✓ accepted", rejected: "✗ rejected", discarded: "discarded", waits: "" };

function addPanel(parent, kind, title) {
  const panel = add(parent, "div", `panel ${kind}`);
  add(panel, "p", "title", title);
  return add(panel, "div", "chips");
}

// A draft: above it what became of it, below it the row that tests it, or where it goes.
function addChip(parent, draft, below, kind = "") {
  const column = add(parent, "span", `chip ${kind}`);
  add(column, "small", "", BECAME[draft.outcome]);
  add(column, "i", draft.outcome, draft.word);
  add(column, "small", "", below);
}

// -- what a reader does -----------------------------------------------------------------------

function mount(root, data) {
  const view = { race, rounds }[root.dataset.view];
  const chosen = Object.fromEntries(data.dials.map((dial) => [dial.name, dial.first]));
  const still = root.querySelector("noscript");

  add(root, "p", "title", root.dataset.title);
  const dials = add(root, "div", "dials");
  const controls = data.dials.map((dial) => addDial(dials, dial, choose));
  const snapped = add(root, "p", "snapped");
  snapped.setAttribute("role", "status");
  snapped.hidden = data.dials.every(hasAllStops);
  const bar = add(root, "div", "player");
  const playButton = addButton(bar, "▶ Play", () => (frame === null ? play() : pause()));
  playButton.className = "play";
  addButton(bar, "◀ Step", () => step(-1));
  addButton(bar, "Step ▶", () => step(1));
  const tries = add(root, "div", "player", data.tries.words);
  for (const [text, name, value] of data.tries.buttons) {
    const dial = data.dials.find((other) => other.name === name);
    addButton(tries, text, () => choose(dial, value)).className = "try";
  }
  const caption = add(root, "figcaption", "caption");
  const sentence = add(root, "p", "sentence");
  sentence.setAttribute("aria-live", "polite");
  const stage = add(root, "div", "stage");
  stage.tabIndex = 0;
  stage.setAttribute("role", "group");
  addLegend(root);
  add(root, "p", "draws", `${data.draws} All numbers are virtual: the methods' own code, on a simulated clock.`);
  still?.remove();

  let shown = [];                               // the runs of this setting
  let moveTo = null;                            // draws them at a moment, and says what happened
  let steps = [];
  let span = 1;
  let now = null;                               // null: at the end, before anything was played
  let frame = null;

  // The nearest stop of each dial, and what is to be said where that is another value.
  function snap() {
    const notes = [];
    const values = data.dials.map((dial) => {
      const wanted = chosen[dial.name];
      const distance = (stop) => Math.abs(stop - wanted);
      const stop = dial.stops.reduce((best, other) => (distance(other) < distance(best) - 1e-9 ? other : best));
      const symbol = dial.label.split(":")[0];
      if (distance(stop) > 1e-9) notes.push(`No run was computed for ${symbol} = ${wanted}; the next one is shown: ${symbol} = ${stop}.`);
      return stop;
    });
    snapped.textContent = notes.join(" ");
    return values;
  }

  function drawSetting() {
    const [numbers, expected] = data.settings[snap().join(",")];
    const runs = numbers.map((number) => readRun(data, number));
    const all = runs.map((run, place) => (
      { run, figures: figuresOf(run, runs[0]), expected: expected[place] }));
    shown = view.chosen(all);
    span = Math.max(...shown.map(({ figures }) => figures.makespan));
    const ends = shown.flatMap(({ run }) => run.commits.map((commit) => commit.end));
    steps = [...new Set(ends)].sort((one, other) => one - other);
    stage.replaceChildren();
    moveTo = view.draw(stage, shown, span);
    caption.textContent = view.caption(shown);
    stage.setAttribute("aria-label", `${root.dataset.title}: ${caption.textContent}`);
    data.dials.forEach((dial, place) => controls[place].show(chosen[dial.name]));
    hideNarrowLabels(stage);
    if (now !== null) now = Math.min(now, steps.at(-1));
    show();
  }

  function show() {
    const first = view === rounds ? steps[0] : steps.at(-1);
    let at = now ?? first;
    if (frame !== null && !glides) at = steps.findLast((other) => other <= at) ?? 0;
    const said = moveTo(at);
    if (sentence.textContent !== said) sentence.textContent = said;
  }

  function choose(dial, value) {
    chooseAll([[dial, value]]);
  }

  function chooseAll(wanted) {
    for (const [dial, value] of wanted) chosen[dial.name] = value;
    drawSetting();
  }

  function play() {
    if (now === null || now >= steps.at(-1) - SOON) now = 0;
    playButton.textContent = "❚❚ Pause";
    let before = performance.now();
    const tick = (moment) => {
      const perSecond = steps.at(-1) / view.secondsOf(shown);
      now = Math.min(now + (moment - before) / 1000 * perSecond, steps.at(-1));
      before = moment;
      show();
      if (now >= steps.at(-1)) pause();
      else frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
  }

  function pause() {
    cancelAnimationFrame(frame);
    frame = null;
    playButton.textContent = "▶ Play";
  }

  function step(direction) {
    pause();
    const from = now ?? (view === rounds ? steps[0] : 0);
    now = direction > 0
      ? steps.find((other) => other > from + SOON) ?? steps.at(-1)
      : steps.findLast((other) => other < from - SOON) ?? (view === rounds ? steps[0] : 0);
    show();
  }

  stage.addEventListener("keydown", (event) => {
    const actions = {
      " ": () => (frame === null ? play() : pause()),
      ArrowRight: () => step(1),
      ArrowLeft: () => step(-1),
    };
    if (!actions[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  });
  new ResizeObserver(() => hideNarrowLabels(stage)).observe(stage);
  drawSetting();
  if (view === race) listenToText(root, data, chooseAll);
  root.dataset.ready = "yes";
  performance.mark("picture");                  // how soon a reader sees it
}
