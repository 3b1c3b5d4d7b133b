// The page on paper: its charts are drawn light, as wide as a sheet and with all their rows, before the browser lays out
// the sheets; afterwards they are as the screen has them.

import { forgetTheme } from "./theme.js";

/**
 * What fits on a sheet of A4 between margins of 1 cm, in CSS pixels: a chart with its heading below the figures. Lanes are laid
 * into `room`, which leaves some for CPU credits.
 */
export const SHEET = { width: 718, height: 690, room: 600, third: 230, plot: 140 };

/** Calls `draw` with whether the page is on paper, before it is printed and after. */
export function onPaper(draw) {
  const root = document.documentElement;
  const turn = (isPrinted) => {
    if (root.hasAttribute("data-paper") === isPrinted) return;
    root.toggleAttribute("data-paper", isPrinted);
    forgetTheme();
    draw(isPrinted);
  };
  addEventListener("beforeprint", () => turn(true));
  addEventListener("afterprint", () => turn(false));
  // Browsers that show how a page would be printed.
  const print = matchMedia("print");
  print.addEventListener("change", () => turn(print.matches));
}
