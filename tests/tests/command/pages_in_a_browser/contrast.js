// Texts whose contrast with what is painted behind their letters is too low: a list of [kind, what]. It follows texts.js.
// Given the page as it is and as it is without its letters, in tiles: [[top, PNG, PNG], …].
const done = arguments[arguments.length - 1];
const tiles = arguments[1];
const LEAST = 4.5;
const channel = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const contrast = (over, [r, g, b]) => {
  const [x, y, z, a] = over;
  const [one, two] = [light([x * a + r * (1 - a), y * a + g * (1 - a), z * a + b * (1 - a)]), light([r, g, b])];
  return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
};
const pixels = async (png) => {
  const bytes = Uint8Array.from(atob(png), (c) => c.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height);
  const ink = canvas.getContext("2d", { willReadFrequently: true });
  ink.drawImage(image, 0, 0);
  return { width: image.width, height: image.height, data: ink.getImageData(0, 0, image.width, image.height).data };
};

// The colours behind a text's letters and a pixel around them, each with how often it is there.
const behind = (text, offset, with_, without) => {
  const { width, height } = with_;
  const [left, right] = [Math.max(0, Math.floor(text.left)), Math.min(width, Math.ceil(text.right))];
  const [top, bottom] = [Math.max(0, Math.floor(text.top - offset)), Math.min(height, Math.ceil(text.bottom - offset))];
  const difference = (x, y) => {
    const n = (y * width + x) * 4;
    const [a, b] = [with_.data, without.data];
    return Math.abs(a[n] - b[n]) + Math.abs(a[n + 1] - b[n + 1]) + Math.abs(a[n + 2] - b[n + 2]);
  };
  let most = 40;
  const inked = [];
  for (let y = top; y < bottom; y += 1) {
    for (let x = left; x < right; x += 1) {
      const by = difference(x, y);
      if (by > 40) inked.push([x, y, by]);
      most = Math.max(most, by);
    }
  }
  // The soft edges of letters are no letters.
  const ground = new Set();
  for (const [x, y, by] of inked) {
    if (by < most / 2) continue;
    for (const [dx, dy] of [[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]]) {
      const [px, py] = [x + dx, y + dy];
      if (px >= left && py >= top && px < right && py < bottom) ground.add(py * width + px);
    }
  }
  const colours = new Map();
  for (const at of ground) {
    const n = at * 4;
    const key = (without.data[n] << 16) | (without.data[n + 1] << 8) | without.data[n + 2];
    colours.set(key, (colours.get(key) ?? 0) + 1);
  }
  return { colours, all: ground.size };
};

(async () => {
  const found = [];
  const said = new Set();
  // Texts of which something is seen: the lines of some are but blanks.
  const seen = new Set();
  const unseen = new Map();
  for (const [offset, ...pngs] of tiles) {
    const [with_, without] = await Promise.all(pngs.map(pixels));
    for (const text of texts) {
      if (!text.isUsable || text.top < offset || text.top >= offset + with_.height) continue;
      const { colours, all } = behind(text, offset, with_, without);
      const where = `“${text.text.slice(0, 50)}” (${text.in})`;
      if (!all) {
        unseen.set(text.node, where);
        continue;
      }
      seen.add(text.node);
      let worst = 21;
      for (const [key, count] of colours) {
        // A line or a stripe has more than a few of the pixels.
        if (count < Math.max(3, all * 0.03)) continue;
        worst = Math.min(worst, contrast(text.colour, [key >> 16, (key >> 8) & 255, key & 255]));
      }
      const what = `${worst.toFixed(2)} of ${where}`;
      if (worst < LEAST && !said.has(what)) found.push(["contrast", what]);
      said.add(what);
    }
  }
  for (const [node, where] of unseen) {
    if (!seen.has(node)) found.push(["contrast", `nothing of ${where} can be seen`]);
  }
  done(found);
})().catch((error) => done([["contrast", `not looked at: ${error}`]]));
