// What the file holds, unpacked: deflated bytes in base64, and in them columns of whole numbers by
// planes (dashboard/export/packed.py).
(function () {
  "use strict";

  function decoded(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
    return bytes;
  }

  /** Give the bytes of a part of the file. */
  async function bytesOf(name) {
    const packed = decoded(document.getElementById("data-" + name).textContent);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  const textOf = async (name) => new TextDecoder().decode(await bytesOf(name));

  /** Put the planes of a column together. */
  function numbers(bytes, at, count, width) {
    const found = new Float64Array(bytes.subarray(at, at + count));
    for (let plane = 1, scale = 256; plane < width; plane += 1, scale *= 256) {
      const from = at + plane * count;
      for (let i = 0; i < count; i += 1) found[i] += bytes[from + i] * scale;
    }
    return found;
  }

  /** Read the document in front of columns, and the columns. */
  function columnsOf(bytes) {
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    const columns = {};
    let at = 4 + length;
    for (const [name, width] of head.columns) {
      columns[name] = numbers(bytes, at, head.rectangles, width);
      at += head.rectangles * width;
    }
    return { head, columns };
  }

  /** Undo what writes -1 as 1, 1 as 2 and -2 as 3. */
  const signed = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);

  window.tilescope = Object.assign(window.tilescope || {}, { unpacked: { bytesOf, textOf, columnsOf, signed } });
})();
