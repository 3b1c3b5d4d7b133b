// Keeps what is written on canvases, with the least contrast to what was painted there before. Run before a page's own scripts.
(() => {
  const channel = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const written = (window.writtenOnCanvases = new Map());
  const { fillText, fillRect } = CanvasRenderingContext2D.prototype;
  const boxOf = (ink, text, x, y, most) => {
    const m = ink.measureText(text);
    const squeezed = Math.min(1, (most ?? Infinity) / m.width);
    const corners = [[x - m.actualBoundingBoxLeft * squeezed, y - m.actualBoundingBoxAscent], [x + m.actualBoundingBoxRight * squeezed, y + m.actualBoundingBoxDescent]];
    const to = ink.getTransform();
    const [from, until] = corners.map(([cx, cy]) => to.transformPoint({ x: cx, y: cy }));
    return { left: from.x, top: from.y, right: until.x, bottom: until.y };
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...most) {
    const box = boxOf(this, text, x, y, ...most);
    const [left, top] = [Math.max(0, Math.floor(box.left)), Math.max(0, Math.floor(box.top))];
    const [wide, high] = [Math.min(this.canvas.width, Math.ceil(box.right)) - left, Math.min(this.canvas.height, Math.ceil(box.bottom)) - top];
    if (wide > 0 && high > 0 && this.canvas.isConnected) {
      const { data } = this.getImageData(left, top, wide, high);
      const counts = new Map();
      for (let n = 0; n < data.length; n += 4) {
        const key = (data[n] << 16) | (data[n + 1] << 8) | data[n + 2];
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      const own = light([1, 3, 5].map((n) => parseInt(this.fillStyle.slice(n, n + 2), 16)));
      let worst = 21;
      for (const [key, count] of counts) {
        if (count < Math.max(3, wide * high * 0.03)) continue;
        const other = light([key >> 16, (key >> 8) & 255, key & 255]);
        worst = Math.min(worst, (Math.max(own, other) + 0.05) / (Math.min(own, other) + 0.05));
      }
      const list = written.get(this.canvas) ?? [];
      list.push({ text: String(text), box, worst });
      written.set(this.canvas, list);
    }
    return fillText.call(this, text, x, y, ...most);
  };
  // A frame begins where all of a canvas is filled.
  CanvasRenderingContext2D.prototype.fillRect = function (x, y, wide, high) {
    const to = this.getTransform();
    if (x === 0 && y === 0 && wide * to.a >= this.canvas.width - 1 && high * to.d >= this.canvas.height - 1) written.delete(this.canvas);
    return fillRect.call(this, x, y, wide, high);
  };
})();
