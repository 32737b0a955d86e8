"use strict";
(function () {
  const root = document.documentElement;
  // A line for each figure, which is read when the figure is drawn for the first time.
  const lines = new Map(document.getElementById("figures").textContent.split("\n").filter((line) => line).map((line) => [/^\{"id":"([^"]*)"/.exec(line)[1], line]));
  const read = new Map();
  // Of each figure that is drawn, the number of its view.
  const shown = new Map();

  function figureOf(id) {
    if (!read.has(id)) read.set(id, JSON.parse(lines.get(id)));
    return read.get(id);
  }

  // Okabe and Ito's colours without yellow and black, which vanish on one of the grounds.
  const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
  const DARK = ["#6cb6f0", "#f0824a", "#3dc9a0", "#e0a3c8", "#f2b84b", "#a5d8f7"];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // What is printed or saved is on white paper.
  const PAPER = { palette: LIGHT, text: "#1b1f24", quiet: "#57606a", grid: "#e3e7ec", ground: "#ffffff", heat: ["#e8f1f8", "#08306b"] };
  // As in the styles.
  const narrow = window.matchMedia("(max-width: 40rem)");
  let printing = false;
  // As wide as a plot can be on A4 and on letter paper, in CSS pixels.
  const SHEET = 680;
  // As tall as one can be, with its title and its note.
  const TALL = 800;
  // The same for tables, and for those that stand beside the cost of a finding.
  const [WHOLE, BESIDE] = [700, 585];

  function theme() {
    if (printing) return PAPER;
    const isDark = dark.matches;
    const style = getComputedStyle(root);
    const of = (name) => style.getPropertyValue(name).trim();
    return { palette: isDark ? DARK : LIGHT, text: of("--text"), quiet: of("--quiet"), grid: of("--grid"), ground: of("--ground"), heat: isDark ? ["#1c2a38", "#9fd0ff"] : PAPER.heat };
  }

  // Of each figure, the names of the lines that are hidden, and the part of its x axis that is zoomed to.
  const hidden = new Map();
  const zoomed = new Map();
  // Plots over the time of one workload are zoomed together, those that are drawn later too.
  const isOverTime = (figure) => /^(time|stack|trace)-/.test(figure.id);
  const zoomOf = (figure) => (isOverTime(figure) ? "over time: " + figure.workload : figure.id);

  // The height that the first screen has left for its picture, where the first row of the table is to be seen below it.
  function left(canvas) {
    const row = document.querySelector("#result tbody tr");
    if (printing || !narrow.matches || !row || !canvas.closest("#result")) return undefined;
    const [place, below] = [canvas.getBoundingClientRect(), row.getBoundingClientRect().bottom];
    return window.innerHeight - (place.top + window.scrollY) - (below - place.bottom);
  }
  function draw(figure, number) {
    const canvas = document.getElementById(figure.id);
    // Another view may have another axis and other lines.
    if (shown.has(figure.id) && shown.get(figure.id) !== number) {
      hidden.delete(figure.id);
      if (!isOverTime(figure)) zoomed.delete(zoomOf(figure));
    }
    shown.set(figure.id, number);
    canvas.classList.add("drawn");
    const drawing = Plot.draw(figure, number, {
      colors: theme(), width: printing ? SHEET : canvas.clientWidth, tallest: printing ? TALL : undefined, left: left(canvas),
      hidden: hidden.get(figure.id), range: printing ? undefined : zoomed.get(zoomOf(figure)),
    });
    Pointer.show(canvas, drawing, {
      zoom: (range) => {
        zoomed.set(zoomOf(figure), range || undefined);
        shown.forEach((number, id) => { if (zoomOf(figureOf(id)) === zoomOf(figure)) draw(figureOf(id), number); });
      },
      toggle: (name) => {
        const names = hidden.get(figure.id) || new Set();
        if (!names.delete(name)) names.add(name);
        hidden.set(figure.id, names);
        draw(figure, number);
      },
    });
  }

  // Shows a view of a figure, also in its list of views.
  function choose(figure, number) {
    const select = document.querySelector('select[data-for="' + figure.id + '"]');
    if (select) select.value = String(number);
    draw(figure, number);
  }

  // A cell of comma separated values.
  function cell(value) {
    const text = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
    return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  }

  // The data of a view, as they are drawn.
  function csv(figure, number) {
    const view = figure.views[number];
    const [x, y] = [view.x || figure.x, view.y || figure.y];
    const title = (spec, label) => (label || spec.title || "").replace(/\n/g, " ");
    const rows = [["panel", "series", title(x, view.x_unit !== undefined ? view.label : "") || "x", title(y) || "value", "x below", "x above", "y below", "y above", "label"]];
    const panel = (k) => {
      const found = (view.panels || [])[k || 0];
      return found ? found.title + (found.unit ? " [" + found.unit + "]" : "") : "";
    };
    const named = (spec, value) => {
      const tick = spec.reversed && spec.ticks ? spec.ticks.find((t) => t[0] === Math.round(value)) : undefined;
      return tick ? tick[1].replace(/\n/g, " ") : value;
    };
    view.lines.forEach((line) => line.y.forEach((value, i) => {
      const place = line.grid ? +(line.grid[0] + i * line.grid[1]).toPrecision(12) : line.x ? line.x[i] : i;
      const [ex, ey] = [(line.error_x || [])[i] || [], (line.error_y || [])[i] || []];
      const text = (line.text || []).length === line.y.length ? line.text[i] : (line.text || [])[0];
      rows.push([panel(line.panel), line.name, named(x, place), named(y, value), ex[0], ex[1], ey[0], ey[1], text ? (line.what || "") + text : ""]);
    }));
    if (view.heat) {
      view.heat.columns.forEach((column, k) => column[1].forEach((count, i) => {
        if (!count) return;
        const from = 10 ** (view.heat.low + (column[0] + i) / view.heat.per_decade);
        rows.push([panel(view.heat.panel), "operations in a cell; y is the lower end of its latencies", +(view.heat.grid[0] + (k + 0.5) * view.heat.grid[1]).toPrecision(9), +from.toPrecision(5), "", "", "", "", count + " operations"]);
      }));
    }
    (view.marks || []).forEach((m) => rows.push(["", "mark", m[0], "", "", "", "", "", m[1]]));
    (view.marks_y || []).forEach((m) => rows.push(["", "mark", "", m[0], "", "", "", "", m[1]]));
    (view.panels || []).forEach((p, k) => (p.marks || []).forEach((m) => rows.push([panel(k), "mark", "", m[0], "", "", "", "", m[1]])));
    return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
  }

  function save(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // A plot on white, 1000 pixels wide; twice as many in a PNG.
  function picture(figure, number, format) {
    const drawing = Plot.draw(figure, number, { colors: PAPER, width: 1000, ground: PAPER.ground, hidden: hidden.get(figure.id), range: zoomed.get(zoomOf(figure)) });
    const text = new XMLSerializer().serializeToString(drawing.svg);
    if (format === "svg") return Promise.resolve(new Blob([text], { type: "image/svg+xml" }));
    return new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => {
        const canvas = Object.assign(document.createElement("canvas"), { width: 2 * drawing.width, height: 2 * drawing.height });
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        const data = atob(canvas.toDataURL("image/png").split(",")[1]);
        resolve(new Blob([Uint8Array.from(data, (c) => c.charCodeAt(0))], { type: "image/png" }));
      };
      image.onerror = () => reject(new Error("the drawing is no picture"));
      image.src = "data:image/svg+xml," + encodeURIComponent(text);
    });
  }

  function saves(figure, format) {
    const number = shown.get(figure.id) || 0;
    const view = figure.views.length > 1 ? "-" + (number + 1) : "";
    const name = figure.id + view + "." + format;
    if (format === "csv") return Promise.resolve(save(name, new Blob([csv(figure, number)], { type: "text/csv" })));
    return picture(figure, number, format).then((blob) => save(name, blob));
  }

  function redraw() {
    Array.from(shown).forEach(([id, number]) => { if (document.getElementById(id).clientWidth || printing) draw(figureOf(id), number); });
  }

  function sortable(table) {
    table.querySelectorAll("th").forEach((th, column) => {
      // A button needs a name.
      if (th.textContent.trim() === "") return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = th.textContent;
      th.textContent = "";
      th.appendChild(button);
      button.addEventListener("click", () => {
        const down = th.getAttribute("aria-sort") === "ascending";
        table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        th.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const value = (row) => {
          const cell = row.cells[column];
          return cell.dataset.sort !== undefined ? +cell.dataset.sort : cell.textContent;
        };
        const compare = (a, b) => {
          const [p, q] = [value(a), value(b)];
          if (typeof p === "number" && typeof q === "number") return p - q;
          // Cells without a number stay behind those with one.
          if (typeof p !== typeof q) return (typeof p === "number" ? -1 : 1) * (down ? -1 : 1);
          return p.localeCompare(q, undefined, { numeric: true });
        };
        Array.from(body.rows).sort((a, b) => compare(a, b) * (down ? -1 : 1)).forEach((row) => body.appendChild(row));
      });
    });
  }

  function measure() {
    root.dataset.plots = String(shown.size);
    root.dataset.expected = String(lines.size);
  }

  root.dataset.readable = String(Math.round(performance.now()));
  document.querySelectorAll("table").forEach((table) => { if (table.tBodies[0].rows.length > 1) sortable(table); });
  document.querySelectorAll("select[data-for]").forEach((select) => {
    select.addEventListener("change", () => draw(figureOf(select.dataset.for), +select.value));
  });
  document.querySelectorAll("button[data-save]").forEach((button) => {
    button.addEventListener("click", () => saves(figureOf(button.dataset.plot), button.dataset.save));
  });
  // From a finding to the plot that proves it, in the view of its run.
  document.querySelectorAll("a[data-plot]").forEach((link) => {
    link.addEventListener("click", () => {
      const figure = figureOf(link.dataset.plot);
      unfold(document.getElementById(figure.id));
      if (link.dataset.view !== undefined) choose(figure, +link.dataset.view);
      else if (!shown.has(figure.id)) draw(figure, 0);
      const place = document.getElementById(figure.id + "-h");
      place.closest("figure").classList.add("proof");
      // Whoever goes on by the keyboard goes on from there.
      place.focus({ preventScroll: true });
    });
  });
  // A link to something within a closed part of the page opens it.
  function unfold(at) {
    for (let part = at.closest("details:not([open])"); part; part = part.parentElement.closest("details:not([open])")) part.open = true;
  }
  function reveal() {
    const at = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    if (!at) return;
    unfold(at);
    at.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  dark.addEventListener("change", redraw);
  // Tables that are wider than a sheet are printed smaller, so that nothing of them is cut off.
  function fit() {
    const tables = Array.from(document.querySelectorAll(".scroll > table"));
    root.classList.add("fitting");
    const widths = tables.map((table) => table.offsetWidth);
    root.classList.remove("fitting");
    tables.forEach((table, i) => table.style.setProperty("--fit", String(Math.min(1, (table.closest(".finding") ? BESIDE : WHOLE) / Math.max(widths[i], 1)))));
  }

  // What was never in the window would not be on paper. What is folded stays so: its reader opens what is to be printed.
  window.addEventListener("beforeprint", () => {
    printing = true;
    fit();
    lines.forEach((_, id) => draw(figureOf(id), shown.get(id) || 0));
    measure();
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    redraw();
  });

  // Plots are drawn when they come near the window, one after the other, so that the page can be read and scrolled meanwhile.
  let working = false;
  function isNear(id) {
    const box = document.getElementById(id).getBoundingClientRect();
    return box.width > 0 && box.bottom > -0.5 * window.innerHeight && box.top < 1.5 * window.innerHeight;
  }
  function next() {
    const id = Array.from(lines.keys()).find((id) => !shown.has(id) && isNear(id));
    working = id !== undefined;
    if (working) {
      draw(figureOf(id), 0);
      measure();
      setTimeout(next, 0);
      return;
    }
    measure();
    if (root.dataset.done === "true") return;
    root.dataset.done = "true";
    root.dataset.millis = String(Math.round(performance.now()));
  }
  const look = () => { if (!working) next(); };
  // After the page has been seen for the first time, or will not be for now.
  let begun = false;
  function begin() {
    if (begun) return;
    begun = true;
    reveal();
    window.addEventListener("scroll", look, { passive: true, capture: true });
    // What was folded has the width of the sheet or of another window.
    const refit = () => {
      shown.forEach((number, id) => {
        const canvas = document.getElementById(id);
        if (canvas.clientWidth && canvas.clientWidth !== canvas.firstChild.clientWidth) draw(figureOf(id), number);
      });
      look();
    };
    window.addEventListener("resize", refit);
    window.addEventListener("toggle", refit, true);
    look();
  }
  requestAnimationFrame(() => setTimeout(begin, 0));
  setTimeout(begin, 500);
})();
