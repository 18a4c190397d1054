// What a Transformer computes with: rows of numbers. A matrix x is a list of rows, one for each token; a weight is one
// long array with its shape, [out, in], as PyTorch stores it.

/** @typedef {Float32Array} Row the features of one token */
/** @typedef {Row[]} Matrix one row for each token */
/** @typedef {{data: Float32Array, shape: number[]}} Weight */

/**
 * Return x Wᵀ + b, row by row.
 *
 * @param {Matrix} x [n, in]
 * @param {Weight} weight [out, in]
 * @param {Weight} [bias] [out]
 * @returns {Matrix} [n, out]
 */
export function linear(x, weight, bias) {
  const [outs, ins] = weight.shape;
  return x.map((row) => {
    const y = new Float32Array(outs);
    for (let o = 0; o < outs; o++) {
      let sum = bias ? bias.data[o] : 0;
      for (let i = 0; i < ins; i++) sum += row[i] * weight.data[o * ins + i];
      y[o] = sum;
    }
    return y;
  });
}

/**
 * Return the softmax of scores. One that is −∞ gets no weight; if all are, there is nothing to attend to: all zeros.
 *
 * @param {Row} scores
 * @returns {Row}
 */
export function softmax(scores) {
  const largest = Math.max(...scores);
  if (largest === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp(score - largest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/**
 * Return the natural logarithms of softmax(logits), in double precision.
 *
 * @param {Row} logits
 * @returns {Float64Array}
 */
export function logSoftmax(logits) {
  const largest = Math.max(...logits);
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - largest);
  const shift = largest + Math.log(sum);
  return Float64Array.from(logits, (logit) => logit - shift);
}

/**
 * Return LayerNorm(x), token by token: mean 0 and variance 1, then gain and bias.
 *
 * @param {Matrix} x [n, d_model]
 * @param {Weight} gain [d_model]
 * @param {Weight} bias [d_model]
 * @returns {Matrix}
 */
export function layerNorm(x, gain, bias, eps = 1e-5) {
  return x.map((row) => {
    const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
    return row.map((value, i) => ((value - mean) / Math.sqrt(variance + eps)) * gain.data[i] + bias.data[i]);
  });
}

/**
 * Return x + y.
 *
 * @param {Matrix} x
 * @param {Matrix} y
 * @returns {Matrix}
 */
export function add(x, y) {
  return x.map((row, n) => row.map((value, i) => value + y[n][i]));
}
