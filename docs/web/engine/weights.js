// A safetensors file: eight bytes with the length of a header, the header as JSON, then all numbers, one tensor behind
// another. In half precision a file is half as large, and its numbers have three digits.

/** @typedef {import("./arrays.js").Weight} Weight */

/**
 * @typedef {object} Checkpoint
 * @property {Record<string, any>} config the model's sizes and options
 * @property {Record<string, any>} extra the two vocabularies, and where it comes from
 * @property {Map<string, Weight>} weights by name
 */

/**
 * Read a file of weights.
 *
 * @param {ArrayBuffer} buffer
 * @returns {Checkpoint}
 */
export function parse(buffer) {
  const bytes = buffer.byteLength < 8 ? -1 : Number(new DataView(buffer).getBigUint64(0, true));
  if (bytes < 2 || 8 + bytes > buffer.byteLength) throw new Error(`not a safetensors file: ${buffer.byteLength} bytes`);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, bytes)));
  const about = JSON.parse(header.__metadata__.transformer_lib);
  delete header.__metadata__;
  const weights = new Map();
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(header)) {
    if (8 + bytes + to > buffer.byteLength) throw new Error(`the file ends within ${name}`);
    const raw = buffer.slice(8 + bytes + from, 8 + bytes + to);
    weights.set(name.replace(/^model\./, ""), { shape, data: numbers(dtype, raw) });
  }
  return { config: about.config, extra: about.extra, weights };
}

/**
 * @param {string} dtype
 * @param {ArrayBuffer} raw
 */
function numbers(dtype, raw) {
  if (dtype === "F32") return new Float32Array(raw);
  if (dtype === "F16") return Float32Array.from(new Uint16Array(raw), fromHalf);
  throw new Error(`weights must be F32 or F16, got ${dtype}`);
}

/**
 * Return the number that 16 bits stand for: a sign, five bits of exponent, ten bits of fraction.
 *
 * @param {number} bits
 */
export function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = (bits & 1023) / 1024;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}
