// A chart of amounts over time, stacked: the largest series apart, the others as one.

const CHART_HEIGHT = 220;
const CHART_LEFT = 64;
const CHART_BOTTOM = 20;
const SERIES_APART = 8;
const OTHERS = "others";

function svg(name, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) {
      element.addEventListener(key.slice(2), value);
    } else {
      element.setAttribute(key, value);
    }
  }
  element.append(...children);
  return element;
}

/** The colour of the nth series; that of the others is grey. */
function seriesColor(nth, dark) {
  return nth < 0
    ? dark
      ? "#5b6472"
      : "#b7bec9"
    : `hsl(${(212 + 137.5 * nth) % 360} ${dark ? 42 : 58}% ${dark ? 46 : 62}%)`;
}

/**
 * The series that are drawn: the largest by name, the others joined. named: Map of a name to its amounts, one for each
 * time; whole: what all are together at each time.
 */
function stackedSeries(named, whole) {
  const size = (amounts) => Math.max(...amounts);
  const sorted = [...named].sort((a, b) => size(b[1]) - size(a[1]) || a[0].localeCompare(b[0])).slice(0, SERIES_APART);
  const rest = whole.map((all, i) => Math.max(0, all - sorted.reduce((sum, [, amounts]) => sum + amounts[i], 0)));
  const found = sorted.map(([name, amounts], nth) => ({ name, amounts, nth }));
  return rest.some((amount) => amount > 0) ? [...found, { name: OTHERS, amounts: rest, nth: -1 }] : found;
}

/**
 * The chart with its legend. times: in ns; series: of stackedSeries; marked: indices of times with a line; onpick:
 * called with the index of the time that was clicked on.
 */
function stackedChart({ title, times, series, marked, width, onpick = () => {} }) {
  const whole = times.map((_, i) => series.reduce((sum, { amounts }) => sum + amounts[i], 0));
  const most = Math.max(...whole, 1);
  const [first, last] = [times[0], Math.max(times[times.length - 1], times[0] + 1)];
  const bottom = CHART_HEIGHT - CHART_BOTTOM;
  const x = (i) => CHART_LEFT + ((times[i] - first) / (last - first)) * (width - CHART_LEFT - 12);
  const y = (amount) => bottom - (amount / most) * (bottom - 12);
  const dark = isDark();
  const below = new Float64Array(times.length);
  const areas = series.map(({ name, amounts, nth }) => {
    const lower = times.map((_, i) => `${x(i).toFixed(1)},${y(below[i]).toFixed(1)}`).reverse();
    amounts.forEach((amount, i) => {
      below[i] += amount;
    });
    const upper = times.map((_, i) => `${x(i).toFixed(1)},${y(below[i]).toFixed(1)}`);
    return svg(
      "polygon",
      { points: [...upper, ...lower].join(" "), fill: seriesColor(nth, dark) },
      svg("title", {}, `${name}: ${formatBytes(amounts[0])} to ${formatBytes(amounts[amounts.length - 1])}`),
    );
  });
  const label = (text, at, height, anchor) =>
    svg("text", { x: at, y: height, "text-anchor": anchor, class: "chart-label" }, text);
  const lines = marked.map((i) => svg("line", { x1: x(i), x2: x(i), y1: 4, y2: bottom, class: "chart-mark" }));
  const scale = [0, 0.5, 1].map((part) =>
    label(formatBytes(Math.round(part * most)), CHART_LEFT - 8, y(part * most) + 4, "end"),
  );
  const nearest = (event) => {
    const at = event.clientX - chart.getBoundingClientRect().left;
    return times.reduce((best, _, i) => (Math.abs(x(i) - at) < Math.abs(x(best) - at) ? i : best), 0);
  };
  const chart = svg(
    "svg",
    {
      width,
      height: CHART_HEIGHT,
      role: "img",
      "aria-label": title,
      class: "chart",
      onclick: (e) => onpick(nearest(e)),
    },
    ...areas,
    ...lines,
    ...scale,
    label(formatTime(first), CHART_LEFT, CHART_HEIGHT - 4, "start"),
    label(formatTime(last), width - 12, CHART_HEIGHT - 4, "end"),
  );
  const legend = series.map(({ name, nth, amounts }) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.backgroundColor = seriesColor(nth, dark);
    const now = el("span", { class: "share", text: formatBytes(amounts[amounts.length - 1]) });
    return el("span", { class: "entry" }, swatch, name, now);
  });
  return el(
    "div",
    {},
    chart,
    el("div", { class: "legend", role: "group", "aria-label": `Legend of ${title}` }, legend),
  );
}
