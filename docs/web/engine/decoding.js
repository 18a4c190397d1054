// From logits to words: the likeliest (greedy), one that is drawn (sampling), or the best of several sentences (beam).

import { logSoftmax, softmax } from "./arrays.js";
import { Run } from "./run.js";
import { BOS, EOS } from "./words.js";

/** @typedef {import("./arrays.js").Row} Row */
/** @typedef {import("./arrays.js").Matrix} Matrix */
/** @typedef {import("./transformer.js").Transformer} Transformer */

/**
 * Grow a sentence by what `choose` makes of the logits, up to <eos> or `limit` words.
 *
 * @param {Transformer} model
 * @param {Matrix} memory
 * @param {(logits: Row) => number} choose
 * @param {{limit?: number, run?: Run}} [options]
 * @returns {{ids: number[], logits: Row[]}} what came after <bos>, <eos> included, and the logits of each step
 */
export function grow(model, memory, choose, { limit = 40, run = new Run() } = {}) {
  let cache = model.start(memory), id = BOS;
  /** @type {number[]} */
  const ids = [];
  /** @type {Row[]} */
  const seen = [];
  while (ids.length < limit && id !== EOS) {
    const step = model.step(id, cache, run);
    id = choose(step.logits);
    cache = step.cache;
    ids.push(id);
    seen.push(step.logits);
  }
  return { ids, logits: seen };
}

/** @param {Row} logits */
export function likeliest(logits) {
  return logits.indexOf(Math.max(...logits));
}

/**
 * Return a function that draws from softmax(logits / temperature), from the `topK` likeliest or the fewest whose
 * probabilities sum to `topP`.
 *
 * @param {{temperature?: number, topK?: number, topP?: number, uniform: () => number}} options
 * @returns {(logits: Row) => number}
 */
export function drawing({ temperature = 1, topK = Infinity, topP = 1, uniform }) {
  if (!(temperature > 0)) throw new Error(`temperature must be above zero, got ${temperature}`);
  return (logits) => {
    const likely = shaped(logits, temperature, topK, topP);
    let left = uniform() * likely.reduce((sum, p) => sum + p, 0);
    const chosen = likely.findIndex((p) => p > 0 && (left -= p) < 0);
    return chosen < 0 ? likely.findLastIndex((p) => p > 0) : chosen; // rounding may leave a crumb
  };
}

/**
 * Return the probabilities that are drawn from, zero for what is left out.
 *
 * @param {Row} logits @param {number} temperature @param {number} topK @param {number} topP
 * @returns {Row}
 */
export function shaped(logits, temperature, topK, topP) {
  let scores = logits.map((logit) => logit / temperature);
  const kth = Float32Array.from(scores).sort().reverse()[Math.min(topK, scores.length) - 1];
  scores = scores.map((score) => (score < kth ? -Infinity : score));
  const likely = softmax(scores), order = [...likely.keys()].sort((a, b) => likely[b] - likely[a]);
  let before = 0;
  for (const id of order) {
    if (topP < 1 && before >= topP) scores[id] = -Infinity;
    before += likely[id];
  }
  return softmax(scores);
}

/**
 * Return numbers in [0, 1) that look random, the same for the same seed (Tommy Ettinger's mulberry32).
 *
 * @param {number} seed
 * @returns {() => number}
 */
export function uniforms(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @typedef {{ids: number[], sum: number, cache: import("./transformer.js").Cache}} Beam unfinished, with its log-probability */
/** @typedef {{ids: number[], sum: number, score: number}} Hypothesis finished; the score is the sum over the length penalty */

/**
 * Beam search: keep the `size` likeliest beginnings (Wu et al. 2016). Returns finished sentences, best first.
 *
 * @param {Transformer} model
 * @param {Matrix} memory
 * @param {{size: number, limit?: number, alpha?: number, run?: Run}} options alpha: of the penalty ((5 + length) / 6)^α
 * @returns {Hypothesis[]}
 */
export function beamSearch(model, memory, { size, limit = 40, alpha = 0.6, run = new Run() }) {
  const penalty = (/** @type {number} */ length) => ((5 + length) / 6) ** alpha;
  /** @type {Hypothesis[]} */
  const finished = [];
  /** @type {(ids: number[], sum: number) => void} */
  const finish = (ids, sum) => void finished.push({ ids, sum, score: sum / penalty(ids.length) });
  /** @type {Beam[]} */
  let beams = [{ ids: [], sum: 0, cache: model.start(memory) }];
  for (let length = 1; length <= limit && beams.length; length++) {
    const best = continuations(model, beams, 2 * size, run);
    best.slice(0, size).filter(({ id }) => id === EOS).forEach(({ beam, id, sum }) => finish([...beam.ids, id], sum));
    beams = best.filter(({ id }) => id !== EOS).slice(0, size).map(({ beam, id, sum, cache }) => ({ ids: [...beam.ids, id], sum, cache }));
    // A beam's sum only falls. So none can win any more where even the best one's, at the longest length, is behind.
    const bound = beams.length ? beams[0].sum / penalty(limit) : -Infinity;
    if (finished.length >= size && (size === 1 || bound <= Math.max(...finished.map(({ score }) => score)))) beams = [];
  }
  beams.forEach(({ ids, sum }) => finish(ids, sum));
  return finished.sort((a, b) => b.score - a.score);
}

/**
 * Return the `wanted` likeliest continuations of all beams together, best first.
 *
 * @param {Transformer} model @param {Beam[]} beams @param {number} wanted @param {Run} run
 */
function continuations(model, beams, wanted, run) {
  const all = beams.flatMap((beam) => {
    const { logits, cache } = model.step(beam.ids.at(-1) ?? BOS, beam.cache, run);
    const logs = logSoftmax(logits), order = [...logs.keys()].sort((a, b) => logs[b] - logs[a]);
    return order.slice(0, wanted).map((id) => ({ beam, id, cache, sum: beam.sum + logs[id] }));
  });
  return all.sort((a, b) => b.sum - a.sum).slice(0, wanted);
}
