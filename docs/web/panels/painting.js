// The mask laboratory: a mask painted cell by cell. Python drew the parts of the picture; here they are put together.

import { text } from "./states.js";

/** @typedef {import("./states.js").State} State */
/** @typedef {import("./states.js").Packed} Packed */
/** @typedef {{preset: string, row: number, column: number}} Values */
/** @typedef {{first: number, labels: string[], pad: boolean[], scores: number[][]}} Data */
/** @typedef {boolean[][]} Mask whether query i may attend to key j */

const BODY = "</style>";

/** @returns {import("./panels.js").Script} */
export function painting() {
  /** @type {string[]} turns of cells that are still to be done: they need to know which cell is chosen */
  let waiting = [];
  /** @type {Set<string>} cells that differ from the preset */
  let flips = new Set();
  return {
    act: (moved) => waiting.push(moved),
    finish(shown, values, packed) {
      const { preset, row, column } = /** @type {Values} */ (values), n = packed.data.labels.length;
      for (const done of waiting) flips = turned(flips, done, row, column, n);
      waiting = [];
      return drawn(shown, painted(preset, packed.data.pad, flips), row, column, packed);
    },
  };
}

/**
 * @param {Set<string>} flips @param {string} done @param {number} row @param {number} column @param {number} n
 * @returns {Set<string>}
 */
function turned(flips, done, row, column, n) {
  if (done === "preset" || done === "undo all") return new Set();
  const cells = done === "toggle cell" ? [column] : done === "toggle row" ? [...Array(n).keys()] : [];
  const over = new Set(cells.map((j) => `${row} ${j}`));
  return new Set([...[...flips].filter((cell) => !over.has(cell)), ...[...over].filter((cell) => !flips.has(cell))]);
}

/** @param {string} preset @param {boolean[]} pad @param {Set<string>} flips @returns {Mask} */
const painted = (preset, pad, flips) =>
  pad.map((_, i) =>
    pad.map((isPad, j) => {
      const seen = (!preset.includes("causal") || j <= i) && (!preset.includes("padding") || !isPad);
      return seen !== flips.has(`${i} ${j}`);
    }),
  );

/**
 * The softmax over the keys that are seen: 0 elsewhere, and in a row that sees nothing.
 *
 * @param {number[]} scores @param {boolean[]} seen
 */
function weightsOf(scores, seen) {
  const largest = Math.max(...scores.filter((_, j) => seen[j]));
  const shares = scores.map((score, j) => (seen[j] ? Math.exp(score - largest) : 0));
  const sum = shares.reduce((total, share) => total + share, 0);
  return shares.map((share) => share / (sum || 1));
}

/**
 * @param {State} shown @param {Mask} mask @param {number} row @param {number} column @param {Packed} packed
 * @returns {State}
 */
function drawn(shown, mask, row, column, packed) {
  /** @type {Data} */
  const { first, labels, pad, scores } = packed.data;
  const n = labels.length, cells = n * n, notes = first + 4 * cells + n * 2 ** n;
  const every = mask.flatMap((seen, i) => seen.map((_, j) => [i, j])), here = row * n + column;
  const bits = mask.map((seen) => seen.reduce((sum, sees, j) => sum + (sees ? 2 ** j : 0), 0));
  const parts = [first + here, ...every.map(([i, j]) => first + 2 * cells + 2 * (i * n + j) + Number(mask[i][j]))];
  parts.push(...bits.map((bit, i) => first + 4 * cells + i * 2 ** n + bit));
  parts.push(...bits.flatMap((bit, i) => (bit ? [] : [notes + i])));
  parts.push(...every.filter(([i, j]) => j > i && mask[i][j]).map(([i, j]) => notes + n + i * n + j), first + cells + here);
  const head = shown.svg.slice(0, shown.svg.indexOf(BODY) + BODY.length);
  const says = told(mask, scores.map((line, i) => weightsOf(line, mask[i])), row, column, packed.data);
  const alt = shown.alt.replace(shown.says, () => says);
  return { ...shown, says, alt, svg: `${head}${parts.map((at) => text(packed, at)).join("")}</svg>` };
}

/** @param {number} value */
const signed = (value) => (Math.abs(value) < 0.005 ? 0 : value).toFixed(2).replace("-", "−");
/** @param {number} weight */
const share = (weight) => (weight === 0 ? "0" : weight < 0.005 ? "<.01" : weight.toFixed(2));
/** @param {number} count */
const counted = (count) => `${count} cell${count === 1 ? "" : "s"}`;

/**
 * The chosen cell, the allowed cells in the future or on padding, and the rows that see nothing.
 *
 * @param {Mask} mask @param {number[][]} weights @param {number} row @param {number} column @param {Data} data
 */
function told(mask, weights, row, column, { labels, pad, scores }) {
  const seen = mask[row][column];
  const cell = seen ? `allowed, score ${signed(scores[row][column])}, weight ${share(weights[row][column])}` : "hidden, score −∞, weight 0";
  const later = mask.flatMap((line, i) => line.flatMap((sees, j) => (sees && j > i ? [{ i, j, weight: weights[i][j] }] : [])));
  const most = later.reduce((best, each) => (each.weight > best.weight ? each : best), later[0]);
  const facts = [`${labels[row]} → ${labels[column]}: ${cell}`, `later tokens seen: ${counted(later.length)}`];
  if (most) facts[1] += `, most by ${labels[most.i]} → ${labels[most.j]} ${share(most.weight)}`;
  const onPad = mask.flatMap((line, i) => line.filter((sees, j) => sees && pad[j] && !pad[i]));
  if (pad.includes(true)) facts.push(`padding seen by real tokens: ${counted(onPad.length)}`);
  const blind = labels.filter((_, i) => !mask[i].includes(true));
  if (blind.length) facts.push(`⚠ sees nothing, weights 0 and no NaN: ${blind.join(", ")}`);
  return facts.join("; ");
}
