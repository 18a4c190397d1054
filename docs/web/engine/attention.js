// Attention, head by head: each query scores all keys, softmax turns scores into weights, weights average the values.

import { linear, softmax } from "./arrays.js";

/** @typedef {import("./arrays.js").Row} Row */
/** @typedef {import("./arrays.js").Matrix} Matrix */
/** @typedef {import("./arrays.js").Weight} Weight */
/** @typedef {(head: number, query: number, key: number) => boolean} May whether a query may attend to a key */

/**
 * softmax(q kᵀ / √d_k) v for one head, whose features are those from `first` up to `last`.
 *
 * @param {Matrix} q [q_len, d_model]
 * @param {Matrix} k [k_len, d_model]
 * @param {number} first
 * @param {number} last
 * @param {(query: number, key: number) => boolean} may
 * @returns {Row[]} the weights, [q_len, k_len]
 */
export function weightsOf(q, k, first, last, may) {
  const root = Math.sqrt(last - first);
  return q.map((query, i) => {
    const scores = new Float32Array(k.length).fill(-Infinity);
    k.forEach((key, j) => {
      if (!may(i, j)) return;
      let dot = 0;
      for (let c = first; c < last; c++) dot += query[c] * key[c];
      scores[j] = dot / root;
    });
    return softmax(scores);
  });
}

/**
 * All heads side by side: [q_len, d_model], before W_O, and the weights [n_heads, q_len, k_len].
 *
 * @param {Matrix} q
 * @param {Matrix} k
 * @param {Matrix} v
 * @param {number} heads
 * @param {May} may
 */
export function attend(q, k, v, heads, may) {
  const width = q[0].length / heads;
  const joined = q.map((query) => new Float32Array(query.length));
  const weights = Array.from({ length: heads }, (_, head) => {
    const first = head * width, last = first + width;
    const rows = weightsOf(q, k, first, last, (i, j) => may(head, i, j));
    rows.forEach((row, i) =>
      row.forEach((weight, j) => {
        for (let c = first; c < last; c++) joined[i][c] += weight * v[j][c];
      }),
    );
    return rows;
  });
  return { joined, weights };
}

/**
 * The four matrices of one attention.
 *
 * @param {(name: string) => Weight} weight gives a weight of the model by its name
 * @param {string} name such as "encoder.layers.0.self_attention"
 */
export function projections(weight, name) {
  /** @param {string} which */
  const by = (which) => (/** @type {Matrix} */ x) => linear(x, weight(`${name}.${which}.weight`));
  return { q: by("w_q"), k: by("w_k"), v: by("w_v"), o: by("w_o") };
}
