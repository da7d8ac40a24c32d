// Sorts and filters the table of all claims. What is chosen stands in the address, as in
//   index.html#paper=pearl,dsi&kind=measured&verdict=no&words=up+to&sort=measured&order=down
// so that a view can be kept and sent. Without this script the table shows every claim.
const table = document.getElementById("all-claims");
const form = document.getElementById("filters");
const body = table.tBodies[0];
const heads = [...table.tHead.rows[0].cells];
const inOriginalOrder = [...body.rows];
const further = document.getElementById("further");
// On a phone every claim is a card, so only as many are shown at first.
const CARDS_AT_FIRST = 20;
const isNarrow = matchMedia("(max-width: 900px)");
let areAllAsked = false;
const GROUPS = ["paper", "kind", "verdict"];     // each empty: everything is shown

// -- the view: what is chosen, as the address and as the form have it ------------------------

const nothingChosen = () => ({ paper: [], kind: [], verdict: [], words: "", sort: "", order: "up" });

// A fragment without "=" is an anchor of the page, not a view.
function viewOfAddress() {
  const view = nothingChosen();
  const fragment = location.hash.slice(1);
  if (!fragment.includes("=")) return view;
  const chosen = new URLSearchParams(fragment);
  for (const group of GROUPS) {
    view[group] = (chosen.get(group) ?? "").split(",").filter(Boolean);
  }
  view.words = chosen.get("words") ?? "";
  view.sort = heads.some((head) => head.dataset.by === chosen.get("sort")) ? chosen.get("sort") : "";
  view.order = chosen.get("order") === "down" ? "down" : "up";
  return view;
}

function viewOfForm(before) {
  const view = { ...before, words: form.elements.words.value.trim() };
  for (const group of GROUPS) {
    view[group] = boxesOf(group).filter((box) => box.checked).map((box) => box.value);
  }
  return view;
}

function boxesOf(group) {
  return [...form.querySelectorAll(`input[name="${group}"]`)];
}

function fragmentOf(view) {
  const parts = [];
  for (const group of GROUPS) {
    if (view[group].length) parts.push(`${group}=${view[group].map(encodeURIComponent).join(",")}`);
  }
  if (view.words) parts.push(`words=${encodeURIComponent(view.words)}`);
  if (view.sort) parts.push(`sort=${view.sort}`);
  if (view.sort && view.order === "down") parts.push("order=down");
  return parts.length ? `#${parts.join("&")}` : "";
}

// -- the table -------------------------------------------------------------------------------

const isChosen = (chosen, value) => !chosen.length || chosen.includes(value);

// A row is shown if its paper is chosen, all words are in it, and one of the verdicts of the
// kinds that are chosen is as wanted.
function fits(row, view) {
  if (!isChosen(view.paper, row.dataset.paper)) return false;
  const text = row.textContent.toLowerCase();
  if (!view.words.toLowerCase().split(/\s+/).every((word) => text.includes(word))) return false;
  const verdicts = [...row.querySelectorAll("td[data-kind]")]
    .filter((cell) => cell.dataset.holds && isChosen(view.kind, cell.dataset.kind));
  return verdicts.some((cell) =>                     // a second verdict counts, too
    cell.dataset.holds.split(" ").some((holds) => isChosen(view.verdict, holds)));
}

function compare(one, other, column, sign) {
  const [a, b] = [one, other].map((row) => row.cells[column].dataset.sort);
  if (a === "" || b === "") return (a === "") - (b === "");      // what has no number comes last
  const isNumber = !Number.isNaN(Number(a)) && !Number.isNaN(Number(b));
  return sign * (isNumber ? a - b : a.localeCompare(b));
}

function sortRows(view) {
  const column = heads.findIndex((head) => head.dataset.by === view.sort);
  const rows = [...inOriginalOrder];
  const sign = view.order === "down" ? -1 : 1;
  if (column >= 0) rows.sort((one, other) => compare(one, other, column, sign));
  body.append(...rows);
  for (const head of heads) {
    const order = head.dataset.by !== view.sort ? "none" : sign > 0 ? "ascending" : "descending";
    head.setAttribute("aria-sort", order);
  }
}

function showView(view) {
  sortRows(view);
  const most = isNarrow.matches && !areAllAsked ? CARDS_AT_FIRST : Infinity;
  let shown = 0;
  for (const row of body.rows) {
    const isShown = fits(row, view);
    row.classList.toggle("is-hidden", !isShown);
    row.classList.toggle("is-later", isShown && shown >= most);
    shown += isShown;
  }
  further.hidden = shown <= most;
  further.textContent = `Show the other ${shown - most} claims`;
  for (const cell of table.querySelectorAll("[data-kind]")) {
    cell.classList.toggle("is-hidden", !isChosen(view.kind, cell.dataset.kind));
  }
  document.getElementById("shown").textContent = `${shown} of ${inOriginalOrder.length} claims.`;
}

function showInForm(view) {
  for (const group of GROUPS) {
    for (const box of boxesOf(group)) box.checked = view[group].includes(box.value);
  }
  form.elements.words.value = view.words;
}

// -- what a reader does ----------------------------------------------------------------------

let view = viewOfAddress();

function choose(next) {
  view = next;
  showView(view);
  history.replaceState(null, "", fragmentOf(view) || location.pathname + location.search);
}

for (const head of heads) {
  const button = document.createElement("button");
  button.textContent = head.textContent;
  button.addEventListener("click", () => {
    const isTurned = view.sort === head.dataset.by && view.order === "up";
    choose({ ...view, sort: head.dataset.by, order: isTurned ? "down" : "up" });
  });
  head.replaceChildren(button);
}
form.addEventListener("input", () => choose(viewOfForm(view)));
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", (event) => {
  event.preventDefault();
  showInForm(nothingChosen());
  choose(nothingChosen());
});
window.addEventListener("hashchange", () => {
  if (location.hash && !location.hash.includes("=")) return;
  view = viewOfAddress();
  showInForm(view);
  showView(view);
});
further.addEventListener("click", () => {
  areAllAsked = true;
  showView(view);
});
isNarrow.addEventListener("change", () => showView(view));
form.hidden = false;
showInForm(view);
showView(view);
