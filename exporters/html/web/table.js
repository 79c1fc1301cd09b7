// Tables that sort by any column and show only rows with a text.

const ROWS_AT_FIRST = 100;

/**
 * columns: [{title, value: row → number or text, show: row → text or element (default: the value), share: row → 0 to 1
 * for a bar, isText, isRare: not in a narrow window}]; rows: any objects; sortBy: the column that is sorted by at first; emptyText.
 */
function sortedTable({
  caption,
  columns,
  rows,
  sortBy = 0,
  filterLabel = null,
  onsort = () => {},
  rowsAtFirst = ROWS_AT_FIRST,
}) {
  let by = sortBy;
  let descending = !columns[by].isText;
  let wanted = "";
  let most = rowsAtFirst;
  const body = el("tbody");
  const foot = el("p", { class: "more" });
  const heads = columns.map((column, nth) =>
    el(
      "th",
      { scope: "col", class: classOf(column) },
      button(column.title, () => {
        descending = by === nth ? !descending : !column.isText;
        by = nth;
        onsort(nth, descending);
        fill();
      }),
    ),
  );

  const compare = (a, b) => {
    const order = ordered(columns[by], a, b);
    if (order !== 0) {
      return descending ? -order : order;
    }
    // What is the same there is in the order of the other columns, numbers from large to small.
    for (const column of columns) {
      const further = ordered(column, a, b);
      if (further !== 0) {
        return column.isText ? further : -further;
      }
    }
    return 0;
  };

  const cell = (column, row) => {
    const shown = column.show ? column.show(row) : String(column.value(row));
    const text = String(column.value(row));
    const content = el(
      "td",
      { class: classOf(column) },
      column.isText
        ? el("div", { class: "clamped", title: text }, typeof shown === "string" ? breakable(shown) : shown)
        : shown,
    );
    if (column.share) {
      content.classList.add("bar");
      content.style.setProperty("--share", `${(100 * Math.min(1, column.share(row) || 0)).toFixed(2)}%`);
    }
    return content;
  };

  const fill = () => {
    const matching = wanted === "" ? rows.slice() : rows.filter((row) => textOf(row).includes(wanted));
    matching.sort(compare);
    heads.forEach((head, nth) => {
      head.setAttribute("aria-sort", nth !== by ? "none" : descending ? "descending" : "ascending");
    });
    body.replaceChildren(
      ...matching.slice(0, most).map((row) => el("tr", {}, ...columns.map((column) => cell(column, row)))),
    );
    const left = matching.length - Math.min(most, matching.length);
    const all = button(`Show all ${formatCount(matching.length)}`, () => {
      most = Infinity;
      fill();
      scroller.focus({ preventScroll: true });
    });
    foot.replaceChildren(
      matching.length === 0 ? "Nothing matches." : "",
      ...(left > 0 ? [`${formatCount(left)} more rows. `, all] : []),
    );
  };

  const textOf = (row) =>
    columns
      .filter((column) => column.isText)
      .map((column) => String(column.value(row)).toLowerCase())
      .join("\n");

  const filter =
    filterLabel === null || rows.length < 8
      ? null
      : el("input", {
          type: "search",
          placeholder: filterLabel,
          "aria-label": filterLabel,
          class: "filter",
          oninput: (event) => {
            wanted = event.target.value.toLowerCase();
            fill();
          },
        });
  const scroller = el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("thead", {}, el("tr", {}, heads)), body),
  );
  fill();
  return el(
    "section",
    { class: "table" },
    el("div", { class: "table-head" }, el("h2", { text: caption }), filter),
    scroller,
    foot,
  );
}

function ordered(column, a, b) {
  const [x, y] = [column.value(a), column.value(b)];
  return typeof x === "string" ? x.localeCompare(y) : (Number.isNaN(x) ? -1 : x) - (Number.isNaN(y) ? -1 : y);
}

function classOf(column) {
  return (column.isText ? "text" : "number") + (column.isRare ? " rare" : "") + (column.isNarrow ? " narrow" : "");
}

/** A column of amounts with their share of the whole as a bar. */
function amountColumn(title, value, unit, whole) {
  return {
    title,
    value,
    show: (row) => formatAmount(value(row), unit),
    share: whole > 0 ? (row) => value(row) / whole : undefined,
  };
}

/** A column of shares, with bars. */
function shareColumn(title, value, whole) {
  return {
    title,
    value,
    show: (row) => formatShare(value(row), whole),
    share: (row) => (whole > 0 ? value(row) / whole : 0),
  };
}

function textColumn(title, value, show) {
  return { title, value, show, isText: true };
}
