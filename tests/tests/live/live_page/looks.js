// What is wrong with how the page looks: an array of sentences. Run in the page by its test.
const wrong = [];
const root = document.documentElement;
if (root.scrollWidth > innerWidth) wrong.push(`it is ${root.scrollWidth} pixels wide in a window of ${innerWidth}`);

const channel = (value) => {
  const part = value / 255;
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
};
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const parse = (text) => {
  const [r, g, b, a = 1] = (text.match(/[\d.]+/g) ?? []).map(Number);
  return [r, g, b, a];
};
const ground = (element) => {
  for (let node = element; node; node = node.parentElement) {
    const colour = parse(getComputedStyle(node).backgroundColor);
    if (colour[3] === 1) return colour;
  }
  return [255, 255, 255, 1];
};
const name = (element) => `${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ""}.${element.className}`;
const isSeen = (element) => element.checkVisibility() && element.getClientRects().length > 0;

let texts = 0;
for (const element of document.body.querySelectorAll("*")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  // What cannot be used need not be readable (WCAG 1.4.3), but says why in its title.
  if (!own || !isSeen(element) || element.disabled) continue;
  texts += 1;
  const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) wrong.push(`contrast ${contrast.toFixed(2)} of ${name(element)}: ${element.textContent.slice(0, 40)}`);
}
if (texts < 80) wrong.push(`only ${texts} elements have text`);

for (const heading of document.querySelectorAll("h2, figcaption h3")) {
  if (!isSeen(heading)) continue;
  const panel = heading.closest("section, figure, dialog");
  const says = panel.textContent.replace(heading.textContent, "").trim();
  const canvas = [...panel.querySelectorAll("canvas")].find(isSeen);
  if (!says && !canvas) wrong.push(`the panel “${heading.textContent.trim()}” is empty`);
  if (!canvas) continue;
  const ink = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let n = 0; n < ink.length && colours.size < 4; n += 4) colours.add((ink[n] << 16) | (ink[n + 1] << 8) | ink[n + 2]);
  if (colours.size < 4) wrong.push(`the chart of “${heading.textContent.trim()}” is not drawn`);
}

for (const control of document.querySelectorAll("button, select, input")) {
  if (!isSeen(control)) continue;
  const label = control.getAttribute("aria-label") || control.textContent.trim() || control.closest("label")?.textContent.trim() || control.title;
  if (!label) wrong.push(`${name(control)} has no name`);
}
for (const canvas of document.querySelectorAll("canvas")) {
  if (isSeen(canvas) && !(canvas.ariaLabel ?? "").trim()) wrong.push(`a canvas has no alternative in words: ${name(canvas.parentElement)}`);
}
return wrong;
