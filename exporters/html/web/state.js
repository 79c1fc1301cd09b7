// What is shown is the URL's fragment: the back button goes back, and a copied link shows the same.

const DEFAULTS = {
  tab: "flame",
  measure: "",
  by: "all",
  from: "roots",
  up: "",
  threads: "",
  range: "",
  find: "",
  zoom: "",
  sel: "",
  fold: "",
  activity: "",
  process: "",
  shots: "",
  table: "",
  code: "",
  mode: "new",
  sure: "",
};

/** What a number in the address stands for in a list; undefined where it is none. */
function numbered(list, text) {
  return /^\d+$/.test(text) ? list[Number(text)] : undefined;
}

class State {
  /** changed: called with the values whenever they change. */
  constructor(changed) {
    this.values = this.#read();
    window.addEventListener("hashchange", () => {
      this.values = this.#read();
      changed(this.values);
    });
  }

  #read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const values = { ...DEFAULTS };
    for (const key of [...Object.keys(DEFAULTS), "source", "sort"]) {
      if (given.has(key)) {
        values[key] = given.get(key);
      }
    }
    return values;
  }

  hashWith(changes) {
    const values = { ...this.values, ...changes };
    const kept = Object.entries(values).filter(([key, value]) => value !== (DEFAULTS[key] ?? ""));
    return `#${new URLSearchParams(kept)}`;
  }

  /** The address after a change, of which the next change knows before the browser says so. */
  #with(changes) {
    this.values = { ...this.values, ...changes };
    return this.hashWith({});
  }

  /** Shows something else; the back button returns. */
  go(changes) {
    location.hash = this.#with(changes);
  }

  /** The same without a step for the back button: while someone types or drags. */
  replace(changes) {
    const url = this.#with(changes);
    if (url !== location.hash) {
      location.replace(url);
    }
  }
}
