// What `traceferry view` is asked, which serves this page: texts of sources that are not in it, and instructions. A page
// from disk asks nobody.

/** Where the machine code is, as machine_code.py wrote it; null on a page without a server. */
async function servedCode() {
  const bytes = location.protocol.startsWith("http") ? embeddedPiece("code", 0) : null;
  return bytes === null ? null : JSON.parse(new TextDecoder().decode(await gunzipped(bytes)));
}

/** The server's answer to one of the Firefox Profiler's questions. Rejects with an Error whose message can be shown. */
async function askedOf(question, request) {
  let response;
  try {
    response = await fetch(question, { method: "POST", body: JSON.stringify(request) });
  } catch {
    throw new Error("traceferry view does not answer: it has ended, or its machine cannot be reached");
  }
  if (!response.ok) {
    throw new Error(`traceferry view answered with status ${response.status}: it was started again, or asked too much`);
  }
  const answer = await response.json();
  if (answer.error !== undefined) {
    throw new Error(answer.error);
  }
  return answer;
}

/** Questions about a recording, each asked once. code: of servedCode(). */
class Served {
  constructor(code) {
    this.code = code;
    this.answers = new Map();
  }

  /** A promise of a source's text. func: a function that stands in it, -1 where none is known. */
  textOf(path, func) {
    const nth = func < 0 ? -1 : this.code.of_func[func];
    const place = nth < 0 ? {} : this.#place(nth, "moduleOffset");
    return this.#once("source/v1", { ...place, file: path }).then(({ source }) => source);
  }

  /** A promise of the instructions of a code: [address, text], the address as it is shown. */
  instructionsOf(nth) {
    const request = { ...this.#place(nth, "startAddress"), size: "0x0", continueUntilFunctionEnd: true };
    return this.#once("asm/v1", request).then(({ startAddress, instructions }) =>
      instructions.map(([offset, text]) => [BigInt(startAddress) + BigInt(offset), text]),
    );
  }

  #place(nth, key) {
    const { lib, start } = this.code.codes[nth];
    const [debugName, debugId] = this.code.libs[lib];
    return { debugName, debugId, name: debugName, codeId: null, [key]: start };
  }

  #once(question, request) {
    const key = JSON.stringify([question, request]);
    if (!this.answers.has(key)) {
      const answer = askedOf(question, request);
      this.answers.set(key, answer);
      answer.catch(() => this.answers.delete(key)); // it may be asked again
    }
    return this.answers.get(key);
  }
}

/** An element that says that something is asked for, until it is there; where it cannot be had, why, and what is shown
 * instead. */
function whenThere(promise, show, instead) {
  const holder = el("div", {}, el("p", { class: "note", role: "status", text: "Asking traceferry view…" }));
  promise.then(
    (found) => holder.replaceChildren(show(found)),
    (error) => holder.replaceChildren(el("p", { class: "note", role: "status", text: `${error.message}.` }), instead()),
  );
  return holder;
}
