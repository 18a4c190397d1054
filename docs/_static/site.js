// Formulas that are wider than the screen scroll; the keyboard must reach them to do so.
const reachable = () => {
  for (const span of document.querySelectorAll("span.math")) {
    const formula = span.querySelector("svg");
    const tooWide = formula && formula.getBoundingClientRect().width > span.clientWidth + 1;
    span.classList.toggle("too-wide", Boolean(tooWide && span.clientWidth));
    if (span.matches(".too-wide")) span.tabIndex = 0;
    else span.removeAttribute("tabindex");
  }
  for (const box of document.querySelectorAll("div.math, .cell_output .output, .pst-scrollable-table-container, div.highlight pre")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
const whenSet = () => (window.MathJax?.startup?.promise ?? Promise.resolve()).then(reachable);
window.addEventListener("load", whenSet);
// After a layout, not at the window's "resize", which comes before it; the side bars change the width, too.
new ResizeObserver(reachable).observe(document.querySelector("article") ?? document.body);

// The side bar opens parts of the contents by a sign without words.
for (const sign of document.querySelectorAll("summary > .toctree-toggle")) {
  const part = sign.closest("li").querySelector("a");
  sign.parentElement.setAttribute("aria-label", `Pages of ${part.textContent.trim()}`);
}

// On paper nothing can be opened: what a prediction leads to is printed, and hints and solutions stay folded.
// Paper is white, whatever the screen is.
const told = () => document.querySelectorAll("details.below-input, details:has(> summary > b)");
let opened = [];
let theme;
window.addEventListener("beforeprint", () => {
  opened = [...told()].filter((fold) => !fold.open);
  for (const fold of opened) fold.open = true;
  theme = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
});
window.addEventListener("afterprint", () => {
  for (const fold of opened) fold.open = false;
  document.documentElement.dataset.theme = theme;
});

// The register's tables have too many columns for a telephone, where each cell says by itself what it is.
for (const table of document.querySelectorAll(":is(#the-corrections, #all-claims-by-topic) table")) {
  const heads = [...table.querySelectorAll("th")].map((head) => head.textContent.trim());
  table.classList.add("cards");
  for (const row of table.querySelectorAll("tbody tr"))
    [...row.cells].forEach((cell, column) => { if (column && heads[column]) cell.dataset.head = heads[column]; });
}

// In a table a long name may break after an underscore or a dot, and nowhere else.
for (const code of document.querySelectorAll("td code .pre, .cell_output td code")) {
  const parts = code.textContent.split(/(?<=[_.])(?=\w)/);
  if (parts.length > 1) code.replaceChildren(...parts.flatMap((part, at) => (at ? [document.createElement("wbr"), part] : [part])));
}

// The front page's translator. A page that was opened from a file may not load modules.
const translatorHere = document.querySelector("[data-front='box']");
if (translatorHere && location.protocol !== "file:") import(new URL("web/front/front.js", document.currentScript.src));
else if (translatorHere) {
  const note = translatorHere.querySelector("[data-front='note']");
  note.textContent = "This page was opened from a file, and a browser runs no translator there: python -m http.server in the site's folder serves it.";
}

// The panels of a notebook's page, which their modules bring to life.
if (document.querySelector("[data-panel]") && location.protocol !== "file:") import(new URL("web/panels/panels.js", document.currentScript.src));
else for (const controls of document.querySelectorAll(".panel-controls")) controls.hidden = true;
