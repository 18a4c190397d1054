// The front page: the whole translator runs here. What is typed or cut is translated again at once.

import { load } from "../engine/translator.js";
import { UnknownWords } from "../engine/words.js";
import { drawArcs } from "./arcs.js";

/** @typedef {import("../engine/run.js").Cut} Cut */
/** @typedef {ReturnType<import("../engine/translator.js").Translator["translate"]>} Translation */

/** @param {string} name @returns {any} */
const part = (name) => document.querySelector(`[data-front="${name}"]`);
const box = part("box");

/** @typedef {{view: string, query: number, key: number}} Gone a connection that is cut, in the heads of its view */
/** @type {{word: string, cue: string, typed: string, reader: number, view: string, cuts: Gone[]}} */
const state = { ...JSON.parse(box.dataset.start), typed: "", view: "all", cuts: [] };
/** @type {Record<string, string[]>} the cues of each ambiguous word, the ones that a cut undoes first */
const cues = JSON.parse(box.dataset.cues);

const sentence = () => state.typed || `The man saw the ${state.word} near the ${state.cue}.`;

/**
 * Return which layers and heads a choice such as "all", "layer 0" or "head 0 3" means.
 *
 * @param {string} view
 * @returns {{layer?: number, head?: number}}
 */
function chosen(view) {
  const [kind, layer, head] = view.split(" ");
  if (kind === "all") return {};
  return kind === "layer" ? { layer: Number(layer) } : { layer: Number(layer), head: Number(head) };
}

/** @returns {Cut[]} */
const cuts = () => state.cuts.map(({ view, query, key }) => ({ ...chosen(view), query, key }));

/** @param {number} key */
const cutHere = (key) => state.cuts.find((cut) => cut.query === state.reader && cut.key === key && covers(cut.view));

/** @param {string} view */
const covers = (view) => view === "all" || view === state.view || state.view.startsWith(view.replace("layer", "head"));

/** @param {number} key */
function toggle(key) {
  const here = cutHere(key);
  if (here) state.cuts = state.cuts.filter((cut) => cut !== here);
  else state.cuts.push({ view: state.view, query: state.reader, key });
  show();
}

/**
 * How much the reader attends to each word: the mean over the heads that are looked at.
 *
 * @param {Translation} translation
 */
function attention(translation) {
  const { layer, head } = chosen(state.view);
  const rows = [...translation.run.weights.entries()]
    .filter(([name]) => name.startsWith("encoder") && (layer === undefined || name.includes(`layers.${layer}.`)))
    .flatMap(([, heads]) => (head === undefined ? heads : [heads[head]]))
    .map((weights) => weights[state.reader]);
  return Array.from(rows[0], (_, key) => rows.reduce((sum, row) => sum + row[key], 0) / rows.length);
}

/**
 * @param {string} kind @param {Record<string, string>} attributes @param {...(Node | string)} inside
 */
function element(kind, attributes, ...inside) {
  const made = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

/**
 * @param {string} label @param {boolean} pressed @param {() => void} press @param {Record<string, string>} [attributes]
 */
function button(label, pressed, press, attributes = {}) {
  const made = element("button", { type: "button", "aria-pressed": String(pressed), ...attributes }, label);
  made.addEventListener("click", press);
  return made;
}

/** Show words, weights and arcs of the sentence. @param {Translation} translation */
function showAttention(translation) {
  const weights = attention(translation), tokens = translation.tokens, reader = tokens[state.reader];
  const columns = tokens.map((token, key) => {
    const word = button(token, key === state.reader, () => ((state.reader = key), show()), { class: "word", "aria-label": `what ${token} reads`, "data-key": `word ${key}` });
    const gone = Boolean(cutHere(key));
    const says = `${gone ? "join" : "cut"} ${reader} to ${token}, ${weights[key].toFixed(2)}`;
    const weight = button(gone ? "✕" : weights[key].toFixed(2).replace(/^0/, ""), gone, () => toggle(key), { class: "weight", "aria-label": says, "data-key": `weight ${key}` });
    if (weights[key] >= 0.3 || gone) weight.classList.add("loud");
    return element("div", { class: "token" }, word, weight);
  });
  keepingFocus(() => part("tokens").replaceChildren(...columns));
  fit();
  const left = part("tokens").getBoundingClientRect().left;
  const middles = columns.map((column) => column.getBoundingClientRect()).map((place) => place.left - left + place.width / 2);
  const width = part("tokens").scrollWidth;
  drawArcs(part("arcs"), { middles, width, reader: state.reader, weights, isCut: (key) => Boolean(cutHere(key)), toggle });
}

/** Letters as large as the row allows, from 17 to 12 pixels; what is still too long scrolls. */
function fit() {
  const row = part("tokens");
  for (let size = 17; size >= 12; size -= 0.5) {
    row.style.fontSize = `${size}px`;
    if (row.scrollWidth <= row.clientWidth) return;
  }
}

/** @param {() => void} change */
function keepingFocus(change) {
  const active = document.activeElement, key = box.contains(active) && active?.getAttribute("data-key");
  change();
  if (key) box.querySelector(`[data-key="${key}"]`)?.focus();
}

/**
 * The German; where a cut has changed it, what it was before is struck out.
 *
 * @param {string[]} words
 * @param {string[]} whole the words without any cut
 */
function showGerman(words, whole) {
  /** @param {string[]} each @param {number} first */
  const joined = (each, first) => {
    const text = each.join(" ").replace(/\s+([.,!?;:])/g, "$1");
    return first ? text : text.slice(0, 1).toUpperCase() + text.slice(1);
  };
  const said = [];
  for (let n = 0, end; n < Math.max(words.length, whole.length); n = end) {
    const same = words[n] === whole[n];
    for (end = n; end < Math.max(words.length, whole.length) && (words[end] === whole[end]) === same; ) end++;
    const now = joined(words.slice(n, end), n), before = joined(whole.slice(n, end), n);
    if (n && !/^[.,!?;:]/.test(now || before)) said.push(" ");
    if (same) said.push(now);
    else said.push(...(before ? [element("del", {}, before), " "] : []), ...(now ? [element("b", {}, now)] : []));
  }
  part("german").replaceChildren(...said);
}

/** What happened, in a sentence. @param {Translation} now @param {Translation} whole */
function note(now, whole) {
  if (!state.cuts.length) return "Click an arc, or the number below a word, to cut that connection.";
  const [last] = state.cuts.slice(-1), where = { all: "in all 8 heads", layer: "in one layer", head: "in one head" }[last.view.split(" ")[0]];
  const between = `${now.tokens[last.query]} no longer reads ${now.tokens[last.key]} ${where}`;
  return `${between}${state.cuts.length > 1 ? `, and ${state.cuts.length - 1} more cut` : ""}: ${now.text === whole.text ? "the translation stays." : "the translation changes."}`;
}

/** @type {import("../engine/translator.js").Translator} */
let translator;

function show() {
  keepingFocus(controls);
  try {
    const whole = translator.translate(sentence()), now = state.cuts.length ? translator.translate(sentence(), { cuts: cuts() }) : whole;
    showAttention(now);
    showGerman(now.words, whole.words);
    part("note").textContent = note(now, whole);
  } catch (error) {
    if (!(error instanceof UnknownWords)) throw error;
    const close = error.words.map((word) => `“${word}”`).join(", ");
    part("note").textContent = `This small translator has never seen ${close}. It knows ${translator.src.words.length - 4} words; the field suggests some.`;
  }
}

/** @param {Partial<typeof state>} changes */
function begin(changes) {
  Object.assign(state, { cuts: [], typed: "", reader: 4 }, changes);
  part("cue").value = state.cue;
  if (!state.typed) part("sentence").value = "";
  show();
}

function controls() {
  part("words").replaceChildren(...Object.keys(cues).map((word) => button(word, !state.typed && word === state.word, () => begin({ word, cue: cues[word][0] }), { "data-key": `choose ${word}` })));
  part("cues").replaceChildren(...cues[state.word].map((cue) => button(cue, !state.typed && cue === state.cue, () => begin({ cue }), { "data-key": `cue ${cue}` })));
  part("ambiguous").textContent = state.word;
  part("reset").disabled = !state.cuts.length;
}

function listen() {
  part("cue").addEventListener("input", () => translator.src.knows(part("cue").value.trim()) && begin({ cue: part("cue").value.trim() }));
  part("cue").addEventListener("change", () => begin({ cue: part("cue").value.trim() || "river" }));
  part("sentence").addEventListener("change", () => begin({ typed: part("sentence").value.trim(), reader: 0 }));
  part("view").addEventListener("change", () => ((state.view = part("view").value), show()));
  part("reset").addEventListener("click", () => ((state.cuts = []), show()));
  new ResizeObserver(() => translator && show()).observe(box);
  for (const form of box.querySelectorAll("form")) form.addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
}

try {
  translator = await load(new URL("../weights.safetensors", import.meta.url));
  part("known").replaceChildren(...translator.src.words.slice(4).filter((word) => /^\p{L}/u.test(word)).sort().map((word) => element("option", { value: word })));
  listen();
  show();
  box.dataset.ready = "yes";
} catch (error) {
  part("note").textContent = `The translator could not be loaded (${error instanceof Error ? error.message : error}). The picture shows what it does.`;
}
