// The colours of categories and tiers: the Firefox Profiler's names, in shades that text can be read on.

// hue, saturation, lightness on light, lightness on dark
const SHADES = new Map(
  Object.entries({
    blue: [214, 84, 77, 42],
    lightblue: [198, 72, 80, 40],
    teal: [176, 44, 68, 32],
    green: [136, 46, 71, 32],
    lightgreen: [100, 50, 76, 34],
    yellow: [47, 88, 69, 33],
    orange: [29, 92, 72, 37],
    brown: [24, 38, 72, 34],
    red: [4, 82, 76, 44],
    lightred: [10, 84, 83, 46],
    magenta: [322, 66, 79, 42],
    purple: [265, 68, 82, 48],
    ink: [231, 36, 76, 44],
    grey: [220, 12, 83, 36],
    darkgrey: [220, 9, 70, 44],
  }),
);

// Why a thread was off the processors: shades that no code has, which are striped besides.
const OFF_CPU = new Map(
  ["Blocked", "Sleeping", "Disk", "Preempted", "Runnable"].map((name) => [name, `off-cpu ${name.toLowerCase()}`]),
);
SHADES.set("off-cpu blocked", [352, 84, 63, 51]);
SHADES.set("off-cpu sleeping", [232, 46, 70, 55]);
SHADES.set("off-cpu disk", [292, 52, 65, 48]);
SHADES.set("off-cpu preempted", [40, 98, 53, 42]);
SHADES.set("off-cpu runnable", [164, 62, 55, 36]);

function isOffCpuColor(name) {
  return name.startsWith("off-cpu ");
}

function hashOf(text) {
  let hash = 17;
  for (let i = 0; i < Math.min(text.length, 40); i++) {
    hash = (hash * 31 + text.charCodeAt(i)) | 0;
  }
  return hash;
}

/** name: a colour; seed: a text by which neighbours of one colour differ a little. */
function shade(name, seed, dark) {
  const [hue, saturation, onLight, onDark] = SHADES.get(name) ?? SHADES.get("grey");
  const more = seed === "" ? 0 : ((hashOf(seed) >>> 3) % 7) - 3;
  return `hsl(${hue} ${dark ? saturation * 0.62 : saturation}% ${(dark ? onDark : onLight) + more}%)`;
}
