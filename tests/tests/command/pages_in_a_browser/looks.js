// What is wrong with how the page looks: a list of [kind, what]. It follows texts.js.
const wrong = [];
const say = (kind, what) => wrong.push([kind, what]);
const root = document.documentElement;

for (const what of clipped) say("clipped text", what);

// Texts on canvases are texts, too.
for (const [canvas, list] of window.writtenOnCanvases ?? []) {
  if (!canvas.isConnected || !isSeen(canvas) || !canvas.getClientRects().length) continue;
  const frame = canvas.getBoundingClientRect();
  const scale = frame.width / canvas.width;
  for (const { text, box, worst } of list) {
    const at = named(canvas.closest("[id]"));
    if (worst < 4.5) say("contrast", `${worst.toFixed(2)} of “${text}” on the canvas of ${at}`);
    if (box.left < -1.5 || box.right > canvas.width + 1.5) say("clipped text", `“${text}” by the canvas of ${at}`);
    texts.push({
      text, element: canvas, in: at, left: box.left * scale + frame.left + scrollX, right: box.right * scale + frame.left + scrollX,
      top: box.top * scale + frame.top + scrollY, bottom: box.bottom * scale + frame.top + scrollY,
    });
  }
}

// Letters that touch: by more than the rounding of fonts.
const sorted = [...texts].sort((a, b) => a.top - b.top);
const touching = new Set();
for (let n = 0; n < sorted.length; n += 1) {
  const a = sorted[n];
  for (let m = n + 1; m < sorted.length && sorted[m].top < a.bottom - 1; m += 1) {
    const b = sorted[m];
    if (a.node && a.node === b.node) continue;
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across <= 1 || down <= 1) continue;
    const what = `“${a.text.slice(0, 60)}” and “${b.text.slice(0, 60)}” (${a.in})`;
    if (!touching.has(what)) say("overlap", what);
    touching.add(what);
  }
}

// Nothing is wider than the page.
const width = root.clientWidth;
if (root.scrollWidth > width) {
  const isInBox = (element) => {
    for (let node = element.parentElement; node && node !== document.body; node = node.parentElement) {
      if (getComputedStyle(node).overflowX !== "visible") return true;
    }
    return false;
  };
  const wide = [...document.body.querySelectorAll("*")].filter((e) => isSeen(e) && e.getBoundingClientRect().right > width + 0.5 && !isInBox(e));
  const least = wide.filter((e) => !wide.some((other) => other !== e && e.contains(other)));
  const who = [...new Set((least.length ? least : wide).map(named))].slice(0, 6);
  say("overflow", `${root.scrollWidth} pixels wide in ${width}: ${who.join(", ")}`);
}
if (printed) {
  const ground = numbers(getComputedStyle(document.body).backgroundColor);
  if (ground[3] > 0 && Math.min(...ground.slice(0, 3)) < 250) say("dark paper", `it is printed on ${ground}`);
  for (const element of document.body.querySelectorAll("*")) {
    const style = getComputedStyle(element);
    if (!isSeen(element) || style.overflowX === "visible" || style.display === "inline" || element.tagName === "svg") continue;
    if (element.scrollWidth > element.clientWidth + 1 && !element.closest(".heard")) {
      say("overflow", `${named(element)} is ${element.scrollWidth} pixels wide in ${element.clientWidth}, and paper can't be scrolled`);
    }
  }
}

// Letters of less than 6.5 pixels are read by nobody.
const scaleOf = (element) => (element.getScreenCTM ? Math.abs(element.getScreenCTM()?.a || 1) : 1);
const tiny = new Map();
for (const { element } of texts) {
  if (element.tagName === "CANVAS") continue;
  const size = Number.parseFloat(getComputedStyle(element).fontSize) * scaleOf(element);
  const least = printed ? 5 : 6.5;
  if (size > 0 && size < least - 0.01) tiny.set(named(element), size);
}
for (const [what, size] of tiny) say("small text", `${what} is ${size.toFixed(1)} pixels high`);

// A plot has a mark that is not its key's, a canvas more than its ground, and a section something to say.
const inked = (mark) => {
  const { width: w, height: h } = mark.getBoundingClientRect();
  return w > 0.4 || h > 0.4;
};
for (const svg of document.querySelectorAll("svg.fig:not([aria-hidden])")) {
  if (!isSeen(svg)) continue;
  const marks = [...svg.querySelectorAll(".item, .line, .bar, .solid, .measure, .whisker")].filter((mark) => !mark.closest(".key"));
  if (!marks.some(inked)) say("empty panel", svg.getAttribute("aria-label") ?? "a figure without a name");
}
for (const canvas of document.querySelectorAll("canvas")) {
  if (!isSeen(canvas) || !canvas.getClientRects().length || !canvas.width) continue;
  const ink = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let n = 0; n < ink.length && colours.size < 4; n += 4) colours.add((ink[n] << 16) | (ink[n + 1] << 8) | ink[n + 2]);
  if (colours.size < 4) say("empty panel", canvas.ariaLabel || named(canvas));
}
for (const heading of document.querySelectorAll("h2, h3")) {
  const panel = heading.closest("section, figure, dialog");
  if (!panel || !isSeen(heading)) continue;
  const says = words(panel.textContent.replace(heading.textContent, ""));
  if (!says && !panel.querySelector("svg, canvas")) say("empty panel", words(heading.textContent));
}

// Names for those who hear the page.
const name = (element) => {
  const by = (element.getAttribute("aria-labelledby") ?? "").split(/\s+/).filter(Boolean).map((id) => document.getElementById(id)?.textContent ?? "");
  return words(by.join(" ") || element.getAttribute("aria-label") || "");
};
if (!root.lang) say("names", "the page says no language");
const tops = [...document.querySelectorAll("h1")].filter(isSeen);
if (tops.length !== 1) say("names", `${tops.length} headings of the first level`);
for (const landmark of ["main", "header"]) {
  if (document.querySelectorAll(`body > ${landmark}`).length !== 1) say("names", `no single <${landmark}>`);
}
for (const figure of document.querySelectorAll("svg:not([aria-hidden]), canvas")) {
  if (!isSeen(figure) || figure.closest("svg[role=img] *, defs")) continue;
  if (figure.getAttribute("role") !== "img") say("names", `${named(figure)} is no image to a screen reader`);
  else if (name(figure).length < 4) say("names", `${named(figure)} has no name`);
}
for (const table of document.querySelectorAll("table")) {
  if (!isSeen(table)) continue;
  const caption = words(table.caption?.textContent ?? "") || name(table);
  const first = words(table.textContent).slice(0, 40);
  if (!caption) say("names", `the table of “${first}” has no caption`);
  const heads = [...table.querySelectorAll("th")];
  if (!heads.length || heads.some((head) => !head.scope)) say("names", `heads of the table of “${first}” don't say what they are heads of`);
}
for (const box of document.querySelectorAll(".scroll, .view")) {
  if (!isSeen(box)) continue;
  const isReached = box.tabIndex === 0 && ["region", "group"].includes(box.getAttribute("role")) && name(box).length > 3;
  if (!isReached) say("names", `${named(box)} scrolls, and has no place in the order of Tab, role or name`);
}
for (const control of document.querySelectorAll("button, select, input, summary, a")) {
  if (!isSeen(control)) continue;
  if (!(name(control) || words(control.textContent) || words(control.closest("label")?.textContent ?? "") || control.title)) say("names", `${named(control)} has no name`);
}
return wrong;
