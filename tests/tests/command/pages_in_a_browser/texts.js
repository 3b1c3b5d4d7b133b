// The texts that a page shows: each with its boxes on the page, one a line, as large as its letters, in pixels.
// What follows it in the same script has `texts`, `clipped` and the functions below.
const printed = arguments[0] === true;
const isSeen = (element) => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
const words = (text) => text.replace(/\s+/g, " ").trim();
const named = (element) => {
  const kind = element.getAttribute("class");
  return element.tagName.toLowerCase() + (element.id ? `#${element.id}` : "") + (kind ? `.${kind.trim().replace(/\s+/g, ".")}` : "");
};
const numbers = (colour) => {
  const [r, g, b, a = 1] = (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  return [r, g, b, a];
};

// How far letters reach above and below their line, of whatever font the browser took.
const paper = document.createElement("canvas").getContext("2d");
const measured = new Map();
const reach = (style, text) => {
  const font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const key = font + text;
  if (!measured.has(key)) {
    paper.font = font;
    const m = paper.measureText(text);
    measured.set(key, [m.fontBoundingBoxAscent - m.actualBoundingBoxAscent, m.fontBoundingBoxDescent - m.actualBoundingBoxDescent]);
  }
  return measured.get(key);
};
const lettered = (box, [above, below], scale) => ({
  left: box.left, right: box.right, top: box.top + above * scale, bottom: box.bottom - below * scale,
});

// The room of a box within its borders and scroll bars.
const inside = (element) => {
  const frame = element.getBoundingClientRect();
  if (element.tagName === "svg") return frame;
  const [left, top] = [frame.left + element.clientLeft, frame.top + element.clientTop];
  return { left, top, right: left + element.clientWidth, bottom: top + element.clientHeight };
};

// The part of a box that its scrolling or clipping ancestors show, and what cuts it off for good.
const within = (box, element) => {
  let { left, right, top, bottom } = box;
  let cut = null;
  for (let node = element; node && node !== document.documentElement; node = node.parentElement) {
    const style = getComputedStyle(node);
    const isDrawing = node.tagName === "svg";
    if (!isDrawing && node.ownerSVGElement) continue;
    if (!isDrawing && style.overflowX === "visible" && style.overflowY === "visible") continue;
    if (style.display === "inline" && !isDrawing) continue;
    const frame = inside(node);
    for (const [low, high, how] of [["left", "right", style.overflowX], ["top", "bottom", style.overflowY]]) {
      if (how === "visible") continue;
      const beyond = Math.max(frame[low] - box[low], box[high] - frame[high]);
      // A reader scrolls, unless the page is printed. What an ellipsis stands for has to be in a title.
      const scrolls = !printed && (how === "auto" || how === "scroll");
      const isTold = style.textOverflow === "ellipsis" && node.closest("[title]");
      if (beyond > 1.5 && !scrolls && !isTold) cut ??= node;
    }
    if (style.overflowX !== "visible") [left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)];
    if (style.overflowY !== "visible") [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)];
  }
  return { shown: { left, right, top, bottom }, cut };
};

const texts = [];
const clipped = [];
const add = (node, text, boxes, colour, isUsable) => {
  const element = node.parentElement;
  for (const box of boxes) {
    if (box.right - box.left < 0.5 || box.bottom - box.top < 0.5) continue;
    const { shown, cut } = within(box, element);
    if (cut) clipped.push(`“${text}” by ${named(cut)}`);
    if (shown.right - shown.left < 1 || shown.bottom - shown.top < 1) continue;
    texts.push({
      text, node, element, colour, isUsable, in: named(element),
      left: shown.left + scrollX, right: shown.right + scrollX, top: shown.top + scrollY, bottom: shown.bottom + scrollY,
    });
  }
};
const opacity = (element) => {
  let all = 1;
  for (let node = element; node; node = node.parentElement) all *= Number(getComputedStyle(node).opacity);
  return all;
};

const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement;
  const text = words(node.textContent);
  if (!text || element.closest("script, style, noscript, title, desc, defs, option") || !isSeen(element)) continue;
  // What is for a screen reader alone is a pixel large.
  const hidden = element.closest(".heard");
  if (hidden && hidden.getBoundingClientRect().width <= 1.5) continue;
  const style = getComputedStyle(element);
  const isDrawn = element.namespaceURI === "http://www.w3.org/2000/svg";
  const [r, g, b, a] = numbers(isDrawn ? style.fill : style.color);
  const colour = [r, g, b, a * opacity(element) * (isDrawn ? Number(style.fillOpacity) : 1)];
  const apart = reach(style, text);
  // What can't be used need not be readable (WCAG 1.4.3).
  const isUsable = !element.closest(":disabled");
  if (isDrawn) {
    const to = element.getScreenCTM();
    const box = element.getBoundingClientRect();
    add(node, text, [Math.abs(to.b) > 1e-6 ? box : lettered(box, apart, to.d)], colour, isUsable);
  } else {
    const range = document.createRange();
    range.selectNodeContents(node);
    add(node, text, [...range.getClientRects()].map((box) => lettered(box, apart, 1)), colour, isUsable);
  }
}
