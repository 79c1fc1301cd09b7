// Bytes out of the page's text: five characters are four bytes (embed.py), and those are gzip.

const ALPHABET = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i))
  .filter((c) => !"\"&'<>\\`{|".includes(c))
  .slice(0, 85);
const DIGIT_OF = new Uint8Array(128);
ALPHABET.forEach((c, digit) => {
  DIGIT_OF[c.charCodeAt(0)] = digit;
});

/** The first nBytes bytes that the text stands for. */
function decoded(text, nBytes) {
  const bytes = new Uint8Array((text.length / 5) * 4);
  const view = new DataView(bytes.buffer);
  for (let at = 0, out = 0; at < text.length; at += 5, out += 4) {
    let number = 0;
    for (let i = at; i < at + 5; i++) {
      number = number * 85 + DIGIT_OF[text.charCodeAt(i)];
    }
    view.setUint32(out, number);
  }
  return bytes.subarray(0, nBytes);
}

/** What an element of the page holds; null where there is no such element. */
function embeddedPiece(name, nth) {
  const element = document.getElementById(`${name}-${nth}`);
  return element && decoded(element.textContent, Number(element.dataset.bytes));
}

/** All pieces of an embedded file, as an ArrayBuffer; waits until the whole page is read. */
async function embedded(name) {
  while (document.getElementById("end") === null) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const pieces = [];
  for (let piece = embeddedPiece(name, 0); piece !== null; piece = embeddedPiece(name, pieces.length)) {
    pieces.push(piece);
    await new Promise((resolve) => setTimeout(resolve));
  }
  return new Blob(pieces).arrayBuffer();
}

async function gunzipped(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
