// The Transformer of Vaswani et al. (2017), as the course builds it: an encoder that reads, a decoder that writes one
// word at a time and reads the encoder's memory. Post-norm, sinusoidal positions, attention without biases.

import { add, layerNorm, linear } from "./arrays.js";
import { attend, projections } from "./attention.js";
import { Run } from "./run.js";

/** @typedef {import("./arrays.js").Row} Row */
/** @typedef {import("./arrays.js").Matrix} Matrix */
/** @typedef {{k: Matrix, v: Matrix, memoryK: Matrix, memoryV: Matrix}} LayerCache keys and values of one layer */
/** @typedef {{length: number, layers: LayerCache[]}} Cache what the decoder has seen; never changed, only followed */

const COMPUTED = { norm_first: false, position: "sinusoidal", tie_embeddings: false, activation: "relu", attention_bias: false, bias: true };

export class Transformer {
  /**
   * @param {Record<string, any>} config
   * @param {Map<string, import("./arrays.js").Weight>} weights
   */
  constructor(config, weights) {
    for (const [name, wanted] of Object.entries(COMPUTED)) {
      const given = config[name] ?? wanted;
      if (given !== wanted) throw new Error(`config must have ${name} = ${wanted}, got ${given}`);
    }
    this.config = config;
    this.weights = weights;
    this.weight = (/** @type {string} */ name) => {
      const weight = weights.get(name);
      if (!weight) throw new Error(`the file has no weight ${name}`);
      return weight;
    };
  }

  /**
   * The encoder: ids of a sentence -> its memory, one row for each word.
   *
   * @param {number[]} ids
   * @returns {Matrix} [src_len, d_model]
   */
  encode(ids, run = new Run()) {
    let x = this.embed("src_embedding", ids, 0);
    for (let layer = 0; layer < this.config.n_layers; layer++) {
      const name = `encoder.layers.${layer}`;
      const { q, k, v, o } = projections(this.weight, `${name}.self_attention`);
      const y = this.attention(run, "encoder", "self_attention", layer, q(x), k(x), v(x), o, 0);
      x = this.residual(`${name}.self_attention_residual`, x, y);
      x = run.through(name, this.feedForward(run, name, x, 0));
    }
    return run.through("encoder", x);
  }

  /**
   * What the decoder has before its first word: no keys of its own, and those of the memory.
   *
   * @param {Matrix} memory
   * @returns {Cache}
   */
  start(memory) {
    const layers = Array.from({ length: this.config.n_layers }, (_, layer) => {
      const { k, v } = projections(this.weight, `decoder.layers.${layer}.cross_attention`);
      return { k: [], v: [], memoryK: k(memory), memoryV: v(memory) };
    });
    return { length: 0, layers };
  }

  /**
   * The decoder: the newest word -> the logits of the next one, and the cache with this word in it.
   *
   * @param {number} id
   * @param {Cache} cache
   * @returns {{logits: Row, cache: Cache}}
   */
  step(id, cache, run = new Run()) {
    const at = cache.length, layers = [];
    let x = this.embed("tgt_embedding", [id], at);
    for (let layer = 0; layer < this.config.n_layers; layer++) {
      const name = `decoder.layers.${layer}`, before = cache.layers[layer];
      const own = projections(this.weight, `${name}.self_attention`);
      const after = { ...before, k: [...before.k, ...own.k(x)], v: [...before.v, ...own.v(x)] };
      let y = this.attention(run, "decoder", "self_attention", layer, own.q(x), after.k, after.v, own.o, at);
      x = this.residual(`${name}.self_attention_residual`, x, y);
      const { q, o } = projections(this.weight, `${name}.cross_attention`);
      y = this.attention(run, "decoder", "cross_attention", layer, q(x), after.memoryK, after.memoryV, o, at);
      x = this.residual(`${name}.cross_attention_residual`, x, y);
      x = run.through(name, this.feedForward(run, name, x, at), at);
      layers.push(after);
    }
    x = run.through("decoder", x, at);
    return { logits: linear(x, this.weight("output_head.weight"))[0], cache: { length: at + 1, layers } };
  }

  /**
   * √d_model times the word's row of the table, plus its position's sines and cosines.
   *
   * @param {string} table
   * @param {number[]} ids
   * @param {number} start position of the first id
   * @returns {Matrix} [ids.length, d_model]
   */
  embed(table, ids, start) {
    const d = this.config.d_model, { data } = this.weight(`${table}.weight`);
    return ids.map((id, n) =>
      Float32Array.from({ length: d }, (_, i) => {
        const angle = (start + n) / 10000 ** ((i - (i % 2)) / d);
        return data[id * d + i] * Math.sqrt(d) + (i % 2 ? Math.cos(angle) : Math.sin(angle));
      }),
    );
  }

  /**
   * One attention of one layer, what is cut left out, and W_O behind it.
   *
   * @param {Run} run @param {string} stack @param {string} part @param {number} layer
   * @param {Matrix} q @param {Matrix} k @param {Matrix} v
   * @param {(x: Matrix) => Matrix} o
   * @param {number} start position of the first query
   */
  attention(run, stack, part, layer, q, k, v, o, start) {
    const name = `${stack}.layers.${layer}.${part}`;
    const may = (/** @type {number} */ head, /** @type {number} */ i, /** @type {number} */ j) =>
      run.may(stack, part, layer, head, start + i, j);
    const { joined, weights } = attend(q, k, v, this.config.n_heads, may);
    run.note(name, weights);
    return run.through(name, o(joined), start);
  }

  /**
   * LayerNorm(x + y).
   *
   * @param {string} name @param {Matrix} x @param {Matrix} y
   */
  residual(name, x, y) {
    return layerNorm(add(x, y), this.weight(`${name}.norm.weight`), this.weight(`${name}.norm.bias`));
  }

  /**
   * LayerNorm(x + W₂ relu(W₁ x)).
   *
   * @param {Run} run @param {string} name @param {Matrix} x @param {number} start
   */
  feedForward(run, name, x, start) {
    const part = `${name}.feed_forward`;
    const wide = linear(x, this.weight(`${part}.expand.weight`), this.weight(`${part}.expand.bias`));
    const active = wide.map((row) => row.map((value) => Math.max(value, 0)));
    const y = linear(active, this.weight(`${part}.contract.weight`), this.weight(`${part}.contract.bias`));
    return this.residual(`${name}.feed_forward_residual`, x, run.through(part, y, start));
  }
}
