// One run of the model: what is forbidden or replaced in it, and what it noted on the way.
//
// Parts have the names that they have in Python, such as "encoder.layers.0.self_attention"; layers, heads and
// positions count from 0.

/** @typedef {import("./arrays.js").Row} Row */
/** @typedef {import("./arrays.js").Matrix} Matrix */

/**
 * A connection that is cut: what is left out means all of them.
 *
 * @typedef {object} Cut
 * @property {"encoder" | "decoder" | "cross"} [attention] of the encoder if left out
 * @property {number} [layer]
 * @property {number} [head]
 * @property {number} [query]
 * @property {number} [key]
 */

/**
 * A result that is replaced: all rows of a part's output, or those at `positions`.
 *
 * @typedef {object} Patch
 * @property {string} name
 * @property {Matrix} value
 * @property {number[]} [positions]
 */

const KINDS = { encoder: ["encoder", "self_attention"], decoder: ["decoder", "self_attention"], cross: ["decoder", "cross_attention"] };

export class Run {
  /** @param {{cuts?: Cut[], patches?: Patch[]}} [changes] */
  constructor({ cuts = [], patches = [] } = {}) {
    this.cuts = cuts;
    this.patches = patches;
    /** @type {Map<string, Row[][]>} of each attention: [n_heads, q_len, k_len]; rows of the decoder as they come */
    this.weights = new Map();
    /** @type {Map<string, Matrix>} what each part returned */
    this.outputs = new Map();
  }

  /**
   * Return whether `query` may attend to `key` in one head of one attention.
   *
   * @param {string} stack @param {string} part @param {number} layer
   * @param {number} head @param {number} query @param {number} key
   */
  may(stack, part, layer, head, query, key) {
    /** @param {number | undefined} named @param {number} here */
    const meets = (named, here) => named === undefined || named === here;
    return !this.cuts.some((cut) => {
      const [itsStack, itsPart] = KINDS[cut.attention ?? "encoder"];
      const here = itsStack === stack && itsPart === part && meets(cut.layer, layer) && meets(cut.head, head);
      return here && meets(cut.query, query) && meets(cut.key, key);
    });
  }

  /**
   * Note what a part returned, and return what goes on: that, or what was put in its place.
   *
   * @param {string} name
   * @param {Matrix} output
   * @param {number} start position of the first row
   */
  through(name, output, start = 0) {
    for (const patch of this.patches.filter((patch) => patch.name === name)) {
      output = output.map((row, n) => {
        const replaced = !patch.positions || patch.positions.includes(start + n);
        return replaced ? patch.value[start + n] ?? row : row;
      });
    }
    this.outputs.set(name, [...(start ? this.outputs.get(name) ?? [] : []), ...output]);
    return output;
  }

  /**
   * Note attention weights; the decoder's come row by row.
   *
   * @param {string} name
   * @param {Row[][]} weights [n_heads, q_len, k_len]
   */
  note(name, weights) {
    const before = this.weights.get(name);
    this.weights.set(name, before ? before.map((rows, head) => [...rows, ...weights[head]]) : weights);
  }
}
