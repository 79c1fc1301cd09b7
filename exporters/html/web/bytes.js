// Bytes out of the page's text: two characters are 13 bits (embed.py), and the bytes are gzip.

const ALPHABET = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).filter((c) => !"<>&".includes(c));
const DIGIT_OF = new Uint8Array(128);
ALPHABET.forEach((c, digit) => {
  DIGIT_OF[c.charCodeAt(0)] = digit;
});

/** The first nBytes bytes that the text stands for. */
function decoded(text, nBytes) {
  const bytes = new Uint8Array(nBytes);
  let pending = 0;
  let nPending = 0;
  for (let at = 0, out = 0; out < nBytes; at += 2) {
    const pair = DIGIT_OF[text.charCodeAt(at)] * ALPHABET.length + DIGIT_OF[text.charCodeAt(at + 1)];
    pending = (pending << 13) | pair;
    for (nPending += 13; nPending >= 8 && out < nBytes; out++) {
      nPending -= 8;
      bytes[out] = pending >>> nPending;
      pending &= (1 << nPending) - 1;
    }
  }
  return bytes;
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
