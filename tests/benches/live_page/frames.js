// How long frames take while the chart is moved about: "pan", "zoom", "rows" or "follow" for some
// milliseconds. Gives {frames, p50, p95, max}, in milliseconds from frame to frame.
const [kind, during, done] = arguments;
const canvas = document.getElementById("gantt-canvas");
const scroller = document.getElementById("gantt");
const box = canvas.getBoundingClientRect();
const wheel = (given) => canvas.dispatchEvent(new WheelEvent("wheel", {
  clientX: box.left + box.width * 0.6, clientY: box.top + 100, bubbles: true, cancelable: true, ...given,
}));
let frames = 0;
const moves = {
  pan: () => wheel({ deltaX: frames % 240 < 120 ? 14 : -14 }),
  zoom: () => wheel({ deltaY: frames % 120 < 60 ? -14 : 14, ctrlKey: true }),
  rows: () => { scroller.scrollTop += frames % 400 < 200 ? 30 : -30; },
  follow: () => {},
};
const took = [];
const begun = performance.now();
let last = begun;
const frame = () => {
  const now = performance.now();
  took.push(now - last);
  last = now;
  frames += 1;
  moves[kind]();
  if (now - begun < during) {
    requestAnimationFrame(frame);
    return;
  }
  took.shift();
  took.sort((a, b) => a - b);
  const at = (part) => Number(took[Math.floor((took.length - 1) * part)].toFixed(1));
  done({ frames: took.length, p50: at(0.5), p95: at(0.95), max: at(1) });
};
requestAnimationFrame(frame);
