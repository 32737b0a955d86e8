"use strict";
// What the pointer does with a drawing of plot.js: reads values, zooms, hides lines.
const Pointer = (function () {
  const { add, amount, finite, clamp } = Plot;

  // A value as its axis names it: that of its category, or a number with its unit. Between named ticks there are no numbers.
  function named(axis, value) {
    const { ticks, reversed, unit } = axis.spec;
    if (!ticks || !ticks.length) return finite(value) ? amount(value, unit) : "";
    const tick = ticks.find((t) => Math.abs(t[0] - (reversed ? Math.round(value) : value)) < 1e-9);
    return tick ? tick[1].replace(/\n/g, " ") : "";
  }
  // The value nearest to a place, within 30 pixels, or the bar or the cell of a heat map under it.
  function nearest(drawing, x, y) {
    const panel = drawing.panels.find((p) => y >= p.top - 4 && y <= p.bottom + 4);
    if (!panel) return null;
    let [best, distance] = [null, 30 ** 2];
    drawing.series.filter((one) => one.panel === panel).forEach((one) => {
      (one.points || []).forEach((p, i) => {
        const d = p ? (p[0] - x) ** 2 + (p[1] - y) ** 2 : Infinity;
        if (d < distance) [best, distance] = [{ one: one, i: i, at: p }, d];
      });
      (one.boxes || []).forEach((b, i) => {
        if (b && distance > 1 && x >= b[0] && x <= b[2] && y >= b[1] - 6 && y <= b[3] + 6) [best, distance] = [{ one: one, i: i, at: [x, y] }, 1];
      });
    });
    const heat = drawing.heat;
    if (heat && drawing.panels[heat.panel] === panel && distance > 144) {
      const column = heat.columns[Math.floor((panel.x.value(x) - heat.grid[0]) / heat.grid[1])];
      const row = Math.floor((Math.log10(panel.y.value(y)) - heat.low) * heat.per_decade);
      const count = column && column[1][row - column[0]];
      if (count) return { at: [x, y], text: [count + " operations", "at " + named(panel.x, panel.x.value(x)), "from " + amount(10 ** (heat.low + row / heat.per_decade), "s")] };
    }
    if (!best) return null;
    const { one: { line }, i } = best;
    const text = (line.text || []).length === line.y.length ? line.text[i] : (line.text || [])[0];
    const values = drawing.rows ? [named(panel.y, line.y[i]), named(panel.x, line.x[i])] : [named(panel.x, line.x[i]), named(panel.y, line.y[i])];
    best.text = [line.name].concat(values, text ? [(line.what || "") + text] : []).filter((part) => part);
    return best;
  }
  // Puts a drawing into its place. Acts: zoom(range or null) and toggle(name).
  function show(canvas, drawing, acts) {
    canvas.replaceChildren(drawing.svg);
    canvas.style.height = drawing.height + "px";
    const tip = canvas.appendChild(document.createElement("div"));
    tip.className = "tip";
    tip.hidden = true;
    drawing.keys.forEach((group) => group.addEventListener("click", () => acts.toggle(group.dataset.key)));
    const { svg, panels, left, right } = drawing;
    const place = (event) => { const box = svg.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const edge = (x) => clamp(x, left, right);
    let band = null;
    svg.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (band) return;
      const found = nearest(drawing, x, y);
      tip.hidden = !found;
      if (!found) return;
      tip.replaceChildren(...found.text.map((text) => Object.assign(document.createElement("div"), { textContent: text })));
      tip.style.left = clamp(found.at[0] + 12, 0, Math.max(drawing.width - tip.offsetWidth - 4, 0)) + "px";
      const above = found.at[1] - tip.offsetHeight - 10;
      tip.style.top = (above < 0 ? found.at[1] + 14 : above) + "px";
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
    // On narrow screens a finger scrolls the page.
    if (drawing.narrow) return;
    svg.addEventListener("pointerdown", (event) => {
      const [from, y] = place(event);
      if (event.button !== 0 || from < left || from > right || !panels.some((p) => y >= p.top && y <= p.bottom)) return;
      event.preventDefault();
      tip.hidden = true;
      band = add(svg, "rect", { class: "band", x: from, y: panels[0].top, width: 0, height: panels[panels.length - 1].bottom - panels[0].top });
      const move = (event) => {
        const to = edge(place(event)[0]);
        band.setAttribute("x", Math.min(from, to));
        band.setAttribute("width", Math.abs(to - from));
      };
      const release = (event) => {
        const to = edge(place(event)[0]);
        window.removeEventListener("pointermove", move);
        ["pointerup", "pointercancel"].forEach((name) => window.removeEventListener(name, release));
        band.remove();
        band = null;
        if (event.type === "pointerup" && Math.abs(to - from) > 5) acts.zoom([Math.min(from, to), Math.max(from, to)].map(panels[0].x.value));
      };
      // The pointer may leave the plot while it is dragged.
      window.addEventListener("pointermove", move);
      ["pointerup", "pointercancel"].forEach((name) => window.addEventListener(name, release));
    });
    svg.addEventListener("dblclick", () => acts.zoom(null));
  }

  return { show: show };
})();
