// The panels of a page: their controls move, and each setting shows the picture that Python drew for it.

import { wire } from "./controls.js";
import { cutting } from "./cutting.js";
import { painting } from "./painting.js";
import { load, numbered, picture, state } from "./states.js";

/** @typedef {import("./controls.js").Control} Control */
/** @typedef {{label: string, control: number, at: number, place: number[]}} Spot a part of the picture that sets a control */
/** @typedef {{controls: Control[], file: string, spots: Spot[], script: string}} Known what a page knows of a panel */
/**
 * What some controls of a panel do, where the settings are too many to be carried.
 *
 * @typedef {object} Script
 * @property {(moved: string) => void} [act] hears which control was moved, or which of its buttons was pressed
 * @property {(shown: State, values: Record<string, any>, packed: Packed) => State | Promise<State>} finish
 */
/** @typedef {import("./states.js").State} State */
/** @typedef {import("./states.js").Packed} Packed */

/** @type {Record<string, () => Script>} */
const SCRIPTS = { cutting, painting };

const NEAR = "600px"; // from the screen: the states are loaded

/** @param {Element} box @param {string} name @returns {HTMLElement} */
const part = (box, name) => /** @type {HTMLElement} */ (box.querySelector(name));

/**
 * Bring a panel to life.
 *
 * @param {HTMLElement} box
 */
function enliven(box) {
  /** @type {Known} */
  const { controls, file, spots, script } = JSON.parse(box.dataset.panel ?? "{}");
  const chosen = controls.map(({ at }) => at), carried = controls.map(({ scripted }) => !scripted);
  const counts = controls.map(({ values }, i) => (carried[i] ? values.length : 1));
  const view = part(box, ".panel-picture"), says = part(box, ".panel-says > b");
  const ours = SCRIPTS[script]?.();
  /** @type {Packed | undefined} */
  let packed;
  /** @type {Promise<void> | undefined} */
  let loading;

  const shown = controls.map((control, i) => {
    const held = /** @type {HTMLElement | null} */ (box.querySelector(`[data-control="${i}"]`));
    return held ? wire(held, control, (at) => move(i, at), act) : () => {};
  });

  /** @param {string} moved */
  function act(moved) {
    ours?.act?.(moved);
    if (packed) show();
    else wanted();
  }

  /** @param {number} control @param {number} at */
  function move(control, at) {
    chosen[control] = at;
    shown[control](at);
    act(controls[control].name);
  }

  async function show() {
    if (!packed) return;
    const setting = chosen.join(" "), plain = state(packed, numbered(chosen.map((at, i) => (carried[i] ? at : 0)), counts));
    const values = Object.fromEntries(controls.map(({ name, values }, i) => [name, values[chosen[i]]]));
    const found = ours ? await ours.finish(plain, values, packed) : plain;
    if (setting !== chosen.join(" ")) return; // it was moved on meanwhile
    view.style.minHeight = `${view.offsetHeight}px`; // what stands below moves down at most once, never up
    hold(view, picture(found), spots, move);
    if (says.textContent !== found.says) says.textContent = found.says;
    const below = part(box, ".panel-foot");
    if (below.innerHTML !== found.foot) below.innerHTML = found.foot;
    box.dataset.shown = setting;
  }

  function wanted() {
    loading ??= load(new URL(file, location.href).href)
      .then((found) => ((packed = found), show()))
      .catch((error) => {
        box.classList.remove("alive");
        part(box, ".panel-controls").setAttribute("disabled", "");
        says.textContent = `What this panel shows could not be loaded (${error.message}).`;
      });
    return loading;
  }

  box.classList.add("alive");
  part(box, ".panel-controls").removeAttribute("disabled");
  new IntersectionObserver(([seen], watch) => {
    if (!seen.isIntersecting) return;
    watch.disconnect();
    wanted();
  }, { rootMargin: NEAR }).observe(box);
}

/**
 * Put a picture into its place, and an invisible button over each part of it that sets a control. The keyboard has the
 * control itself, so Tab skips these buttons.
 *
 * @param {HTMLElement} view
 * @param {string} svg
 * @param {Spot[]} spots
 * @param {(control: number, at: number) => void} move
 */
function hold(view, svg, spots, move) {
  view.innerHTML = svg;
  for (const { label, control, at, place } of spots) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "panel-spot", title: label, tabIndex: -1 });
    button.setAttribute("aria-hidden", "true");
    ["left", "top", "width", "height"].forEach((side, i) => button.style.setProperty(side, `${place[i]}%`));
    button.addEventListener("click", () => move(control, at));
    view.append(button);
  }
}

for (const box of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-panel]"))) enliven(box);
