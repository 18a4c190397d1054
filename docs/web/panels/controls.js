// The controls of a panel, which the page holds as HTML: what they say when they are moved, and how they look then.

/** @typedef {{kind: string, name: string, label: string, values: (number | string | boolean)[], at: number, some: boolean, scripted: boolean}} Control */

/** @param {number | string | boolean} value */
const written = (value) => (typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value));

/**
 * Wire a control; return what shows its value's number.
 *
 * @param {HTMLElement} box
 * @param {Control} control
 * @param {(at: number) => void} move
 * @param {(action: string) => void} act
 * @returns {(at: number) => void}
 */
export function wire(box, control, move, act) {
  const { values } = control, last = values.length - 1;
  const range = /** @type {HTMLInputElement | null} */ (box.querySelector("input[type=range]"));
  const number = /** @type {HTMLInputElement | null} */ (box.querySelector("input[type=number]"));
  const tick = /** @type {HTMLInputElement | null} */ (box.querySelector("input[type=checkbox]"));
  const list = box.querySelector("select"), output = box.querySelector("output"), note = box.querySelector(".note");
  const buttons = /** @type {NodeListOf<HTMLButtonElement>} */ (box.querySelectorAll("[data-at]"));
  let now = control.at;

  /** @param {number} at @param {string} [said] */
  const go = (at, said = "") => {
    if (note) note.textContent = said;
    move(at);
  };
  range?.addEventListener("input", () => go(Number(range.value)));
  number?.addEventListener("change", () => {
    const { at, said } = nearest(number.value, control);
    go(at < 0 ? now : at, said);
  });
  number?.addEventListener("keydown", (event) => {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!by) return;
    event.preventDefault(); // the page offers some numbers, which need not be one apart
    go(Math.min(last, Math.max(0, now + by)));
  });
  tick?.addEventListener("change", () => go(Number(tick.checked)));
  list?.addEventListener("change", () => go(Number(list.value)));
  for (const button of buttons) button.addEventListener("click", () => go(Number(button.dataset.at)));
  for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (box.querySelectorAll("[data-do]"))) button.addEventListener("click", () => act(button.dataset.do ?? ""));
  const goes = { back: () => Math.max(0, now - 1), next: () => Math.min(last, now + 1), reset: () => 0 };
  for (const [name, to] of Object.entries(goes)) box.querySelector(`[data-go=${name}]`)?.addEventListener("click", () => go(to()));

  return (at) => {
    now = at;
    if (range) range.value = String(at);
    range?.setAttribute("aria-valuetext", written(values[at]));
    if (number) number.value = written(values[at]);
    if (tick) tick.checked = Boolean(values[at]);
    if (list) list.value = String(at);
    if (output) output.textContent = written(values[at]);
    for (const button of buttons) button.setAttribute("aria-pressed", String(Number(button.dataset.at) === at));
  };
}

/**
 * The value next to a typed number, and a sentence where it is another one; "at" is -1 where no number was typed.
 *
 * @param {string} typed
 * @param {Control} control
 * @returns {{at: number, said: string}}
 */
function nearest(typed, { values, some }) {
  const wanted = Number(typed);
  if (typed.trim() === "" || Number.isNaN(wanted)) return { at: -1, said: "type a number" };
  const far = values.map((value) => Math.abs(Number(value) - wanted));
  const at = far.indexOf(Math.min(...far)), found = Number(values[at]);
  if (found === wanted) return { at, said: "" };
  const bound = wanted < Number(values[0]) ? "smallest" : wanted > Number(values[values.length - 1]) ? "largest" : "nearest";
  return { at, said: `the ${bound} ${some ? "on this page " : ""}is ${written(found)}` };
}
