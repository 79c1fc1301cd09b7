// Elements. Texts of a recording become text nodes and attribute values, never markup.

/** An element. props: attributes; class, text, on* handlers; children: elements, texts, or null to leave one out. */
function el(name, props = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) {
      continue;
    }
    if (key === "class") {
      element.className = value;
    } else if (key === "text") {
      element.textContent = value;
    } else if (key.startsWith("on")) {
      element.addEventListener(key.slice(2), value);
    } else {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A text as pieces between which a line may break: after punctuation, not within a word, nor behind what opens words. */
function breakable(text) {
  return text
    .split(/(?<=[.:/<>,_()[\]\s|-])(?<!\s[(<[])(?=[^.:/<>,_()[\]\s|-])/)
    .flatMap((piece, nth) => (nth === 0 ? [piece] : [el("wbr"), piece]));
}

function button(text, onclick, props = {}) {
  return el("button", { type: "button", text, onclick, ...props });
}

/** Fills an element anew. The control that had the focus is another element then: it gets the focus, known by its name. */
function keepingFocus(element, fill) {
  const nameOf = (control) => `${control.tagName} ${control.getAttribute("aria-label") ?? control.textContent}`;
  const focused = element.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  fill();
  if (focused !== null && !element.contains(document.activeElement)) {
    const controls = [...element.querySelectorAll("a, button, select, input, [tabindex]")];
    controls.find((control) => nameOf(control) === focused)?.focus({ preventScroll: true });
  }
}

/** For readers of the screen. */
function announce(text) {
  document.getElementById("live").textContent = text;
}

/** A canvas's context, with one unit for each CSS pixel. */
function sharpContext(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function isDark() {
  const { theme: chosen, printing } = document.documentElement.dataset;
  return printing !== undefined
    ? false
    : chosen
      ? chosen === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
}

function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Changes between dark and light. */
function themeButton() {
  const toggle = button("◐", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    window.dispatchEvent(new Event("themechange"));
  });
  toggle.className = "quiet theme";
  toggle.title = "Dark or light";
  toggle.setAttribute("aria-label", "Dark or light");
  return toggle;
}

/** Tells of each drag over an element: moved(from, to, isMade), isMade at its end. placeOf: what an event points at. */
function onDrag(element, placeOf, moved) {
  let from = null;
  element.addEventListener("pointerdown", (event) => {
    from = placeOf(event);
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (from !== null) {
      moved(from, placeOf(event), false);
    }
  });
  element.addEventListener("pointerup", (event) => {
    if (from !== null) {
      moved(from, placeOf(event), true);
      from = null;
    }
  });
}
