// What keys do, in a dialog that `?` opens.

const KEYS = [
  ["/", "Search functions"],
  ["?", "This help"],
  ["Tab", "To the next control; Shift+Tab to the one before"],
  ["Escape", "Closes a menu or this help; zooms out in the graph; takes back a range in the strip and the heatmap"],
  ["Arrow keys", "In the graph: to the caller, the callee, the frame before or after"],
  ["Enter", "In the graph: zooms to the frame, or unfolds it"],
  ["Home", "In the graph: shows everything"],
  ["A D W S", "In the graph: left, right, closer, further; also with Ctrl and the wheel"],
  ["← → Shift", "In the strip and the heatmap: moves the range; with Shift its end"],
];

class Help {
  constructor() {
    this.dialog = el(
      "dialog",
      { class: "help", "aria-labelledby": "help-title", onclick: (event) => this.#clicked(event) },
      el("h2", { id: "help-title", text: "Keys" }),
      el(
        "dl",
        {},
        KEYS.flatMap(([keys, text]) => [el("dt", {}, el("kbd", { text: keys })), el("dd", { text })]),
      ),
      button("Close", () => this.dialog.close(), { class: "primary" }),
    );
    this.opener = button("?", () => this.open(), {
      class: "quiet keys rare",
      title: "Keys",
      "aria-label": "Help: keys",
    });
  }

  open() {
    if (!this.dialog.open) {
      this.dialog.showModal();
    }
  }

  #clicked(event) {
    if (event.target === this.dialog) {
      this.dialog.close();
    }
  }
}
