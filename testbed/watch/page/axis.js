// The axis of time of the Gantt chart, its grid, and the playhead on it.

import { AXIS } from "./rows.js";

/** Draws a line for each tick, and keeps the ticks for the axis. */
export function drawGrid(gantt) {
  const { ink, theme, size, gutter } = gantt;
  const { view } = gantt.state;
  gantt.ticks = view.ticks(size.width - gutter, 95);
  ink.fillStyle = theme.line;
  for (const { time } of gantt.ticks) ink.fillRect(Math.round(gantt.x(time, view)), AXIS, 1, size.height);
}

export function drawAxis(gantt) {
  const { ink, theme, size, gutter } = gantt;
  const { view, run, head } = gantt.state;
  ink.fillStyle = theme.bg;
  ink.fillRect(0, 0, size.width, AXIS);
  ink.fillStyle = theme.axis;
  ink.fillRect(0, AXIS - 1, size.width, 1);
  ink.font = `11px ${theme.font}`;
  ink.textAlign = "center";
  ink.textBaseline = "middle";
  for (const { time, label } of gantt.ticks) {
    const x = gantt.x(time, view);
    if (x < gutter || x > size.width + 0.5) continue;
    // The label of a tick at the right end would be cut off.
    const wide = ink.measureText(label).width / 2;
    ink.fillStyle = theme.dim;
    if (x <= size.width - 12 || view.scale === "log-back") ink.fillText(label, Math.min(x, size.width - wide - 3), 10);
    ink.fillStyle = theme.axis;
    ink.fillRect(Math.round(x), AXIS - 5, 1, 4);
  }
  const deadline = run?.deadline_s ? gantt.x(run.deadline_s, view) : -1;
  if (deadline > gutter && deadline < size.width) tag(gantt, deadline, "deadline", theme.limit);
  const at = gantt.x(head, view);
  if (at < gutter || at > size.width) return;
  ink.fillStyle = theme.accent;
  ink.beginPath();
  ink.moveTo(at - 6, AXIS - 9);
  ink.lineTo(at + 6, AXIS - 9);
  ink.lineTo(at, AXIS);
  ink.closePath();
  ink.fill();
}

function tag({ ink, theme, size }, x, text, colour) {
  ink.font = `600 11px ${theme.font}`;
  const wide = ink.measureText(text).width + 8;
  const left = Math.min(x - wide / 2, size.width - wide - 2);
  ink.fillStyle = theme.bg;
  ink.fillRect(left, 2, wide, 16);
  ink.fillStyle = colour;
  ink.textAlign = "left";
  ink.fillText(text, left + 4, 10);
}
