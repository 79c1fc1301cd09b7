// Instructions with what each has itself, on a page that is served: only its server has them.

function instructionsView(recording, state) {
  const { codes } = recording.served.code;
  const number = numbered(codes, state.values.code) === undefined ? 0 : Number(state.values.code);
  const { name, start, heat } = codes[number];
  const chooser = el(
    "select",
    { "aria-label": "Machine code", onchange: (event) => state.go({ code: event.target.value }) },
    codes.map((code, nth) => el("option", { value: String(nth), text: code.title, selected: nth === number })),
  );
  const wanted = recording.measureAt(state.values.measure);
  const chosen = heat.find(({ measure }) => measure === wanted) ?? heat[0];
  const bar = el(
    "div",
    { class: "toolbar" },
    el("label", {}, el("span", { text: "Function" }), chooser),
    heat.length > 1
      ? weightChoice(
          recording,
          state,
          heat.map(({ measure }) => measure),
          chosen.measure,
        )
      : null,
    el("span", { class: "note name", text: name }),
  );
  const unit = chosen === undefined ? "count" : recording.measures[chosen.measure].unit;
  const own = new Map(
    (chosen?.offset ?? []).map((offset, nth) => [BigInt(start) + BigInt(offset), chosen.amount[nth]]),
  );
  const addresses = () => [...own.keys()].sort((a, b) => (a < b ? -1 : 1)).map((address) => [address, ""]);
  return [
    bar,
    whenThere(
      recording.served.instructionsOf(number),
      (found) => instructionTable(found, own, unit),
      () => instructionTable(addresses(), own, unit),
    ),
  ];
}

/** instructions: [address, text]; own: what an address has. */
function instructionTable(instructions, own, unit) {
  const most = Math.max(...own.values(), 1);
  const whole = [...own.values()].reduce((sum, amount) => sum + amount, 0);
  const hottest = instructions.findIndex(([address]) => own.get(address) === most);
  return longTable({
    label: "Instructions",
    heads: ["Self", "%", "Address", "Instruction"],
    n: instructions.length,
    centre: hottest + 1,
    rowOf: (at) => {
      const [address, text] = instructions[at - 1];
      const amount = own.get(address) ?? 0;
      return hotRow(amount / most, [
        el("td", { class: "number", text: amount > 0 ? formatAmount(amount, unit) : "" }),
        el("td", { class: "number", text: amount > 0 ? formatShare(amount, whole) : "" }),
        el("td", { class: "line", text: `0x${address.toString(16)}` }),
        el("td", { class: "code", text }),
      ]);
    },
  });
}
