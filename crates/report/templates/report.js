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

  // The library of plots is run when the first plot is drawn, since it takes longer than all the rest of the page.
  function library() {
    if (window.Plotly) return window.Plotly;
    const script = document.createElement("script");
    script.textContent = document.getElementById("library").textContent;
    document.head.appendChild(script);
    return window.Plotly;
  }

  // Okabe and Ito's colours without yellow and black, which vanish on one of the grounds.
  const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
  const DARK = ["#6cb6f0", "#f0824a", "#3dc9a0", "#e0a3c8", "#f2b84b", "#a5d8f7"];
  const DASHES = ["solid", "dash", "dashdot", "dot"];
  const SYMBOLS = ["circle", "square", "triangle-up", "cross"];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // What is printed or saved is on white paper.
  const PAPER = { palette: LIGHT, text: "#1b1f24", quiet: "#57606a", grid: "#e3e7ec", ground: "#ffffff", heat: ["#e8f1f8", "#08306b"] };
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

  // Plotly reads a little HTML in its texts; names of people's studies are text.
  function plain(text) {
    return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\n/g, "<br>");
  }

  function ellipsis(text, length) {
    return text.length > length ? text.slice(0, length - 1) + "…" : text;
  }

  function axis(spec, colors, unit, narrow, values) {
    const made = {
      title: { text: plain(spec.title), standoff: 8, font: { size: 12, color: colors.quiet } },
      automargin: true, gridcolor: colors.grid, linecolor: colors.grid, zerolinecolor: colors.grid,
      tickfont: { size: 11, color: colors.text }, nticks: narrow ? 4 : 7, fixedrange: narrow,
      exponentformat: "SI", minexponent: 1, ticksuffix: unit || "", separatethousands: false,
    };
    if (spec.log) {
      made.type = "log";
      const positive = values.filter((v) => v > 0);
      const low = positive.reduce((a, b) => Math.min(a, b), Infinity);
      const high = positive.reduce((a, b) => Math.max(a, b), 0);
      if (high > 0) {
        made.range = [Math.log10(low) - 0.1, Math.log10(high) + 0.1];
        const decades = made.range[1] - made.range[0];
        made.dtick = decades > (narrow ? 6 : 9) ? 2 : decades > 1.3 ? 1 : "D1";
      }
      made.minor = { ticks: "outside", ticklen: 3, tickcolor: colors.grid };
    }
    if (spec.zero && !spec.log) made.rangemode = "tozero";
    if (spec.hidden) made.visible = false;
    if (spec.range) {
      const end = (v) => (spec.log ? Math.log10(v) : v);
      made.range = [end(spec.range[0]), end(spec.range[1])];
      made.autorange = false;
    }
    if (spec.ticks && spec.ticks.length) {
      made.ticksuffix = "";
      let ticks = spec.ticks;
      if (spec.reversed) {
        // Labels of categories: not more than fit.
        const step = Math.ceil(ticks.length / 60);
        ticks = ticks.filter((_, i) => i % step === 0);
        if (!spec.range) made.range = [spec.ticks.length - 0.4, -0.6];
        made.zeroline = false;
      }
      if (spec.upright) {
        made.tickangle = -90;
        made.tickfont.size = 10;
        made.range = [-0.7, spec.ticks.length - 0.3];
      }
      made.tickmode = "array";
      made.tickvals = ticks.map((t) => t[0]);
      made.ticktext = ticks.map((t) => t[1].split("\n").map((l) => plain(ellipsis(l, narrow ? 18 : 40))).join("<br>"));
    }
    return made;
  }

  // Half widths for Plotly; what has no interval has no bar.
  function reach(bars, color) {
    const side = (k) => bars.map((e) => e === null ? 0 : e[k]);
    return { type: "data", symmetric: false, arrayminus: side(0), array: side(1), color: color, thickness: 2, width: 5 };
  }

  function trace(line, colors, rows, places) {
    const palette = colors.palette;
    const color = line.quiet ? colors.quiet : palette[line.color % palette.length];
    const round = Math.floor(line.color / palette.length);
    const n = line.y.length;
    const x = line.grid ? line.y.map((_, i) => +(line.grid[0] + i * line.grid[1]).toPrecision(12)) : line.x;
    const made = {
      x: x, y: line.y, name: plain(ellipsis(line.name, 60)), showlegend: !line.unlisted,
      opacity: line.faint ? 0.55 : 1,
      hovertemplate: "%{x}<br>%{y}<extra>" + plain(line.name) + "</extra>",
    };
    if (rows) made.hovertemplate = "%{x}<extra>" + plain(line.name) + "</extra>";
    if (line.panel) made.yaxis = "y" + (line.panel + 1);
    if (line.group) made.legendgroup = line.group;
    if (line.text && line.text.length) {
      made.text = line.text.length === n ? line.text.map(plain) : plain(line.text[0]);
      made.hovertemplate = made.hovertemplate.replace("<extra>", "<br>" + plain(line.what || "") + "%{text}<extra>");
    }
    if (line.error_x) made.error_x = reach(line.error_x, color);
    if (line.error_y) made.error_y = reach(line.error_y, color);
    if (line.mode === "bars" || line.mode === "across") {
      // What is said of a bar is for the pointer alone.
      Object.assign(made, { type: "bar", orientation: line.mode === "across" ? "h" : "v", marker: { color: color }, textposition: "none" });
      // Of bars at numbered places each line has but some, from which their width cannot be told.
      if (places) made.width = 0.7;
      return made;
    }
    made.type = "scatter";
    if (line.labels) {
      made.hovertext = made.text;
      made.hovertemplate = made.hovertemplate.replace("%{text}", "%{hovertext}");
      made.text = line.labels.map(plain);
      made.textfont = { size: 11, color: colors.text };
      made.textposition = "middle left";
      made.cliponaxis = false;
    }
    if (line.mode === "markers" || line.mode === "joined") {
      made.mode = "markers" + (line.mode === "joined" ? "+lines" : "") + (line.labels ? "+text" : "");
      made.marker = {
        color: color, symbol: line.symbol || SYMBOLS[round % SYMBOLS.length], size: line.size || 6,
        line: { width: line.symbol && line.symbol.endsWith("-open") ? 2 : line.symbol === "diamond" ? 1 : 0, color: line.symbol === "diamond" ? colors.ground : color },
      };
    } else {
      // A line through a few values may be no more than a point, which has no length.
      const few = line.y.filter((v) => v !== null).length <= 4;
      made.mode = few ? "lines+markers" : "lines";
      if (few) made.marker = { color: color, size: 5 };
    }
    if (line.mode !== "markers") {
      made.line = { color: color, width: 1.75, dash: line.faint ? "dot" : DASHES[round % DASHES.length] };
      if (line.mode === "steps") made.line.shape = "hv";
    }
    return made;
  }

  // Panels one above the other, with one x axis below; the lines of each are named above it, in their colours.
  function stack(layout, view, colors, narrow, height) {
    const n = view.panels.length;
    const [gap, head] = narrow ? [38 / height, 30 / height] : [26 / height, 18 / height];
    const each = (1 - head - gap * (n - 1)) / n;
    view.panels.forEach((panel, k) => {
      const top = 1 - head - k * (each + gap);
      const values = view.lines.filter((l) => (l.panel || 0) === k).flatMap((l) => l.y.filter((v) => typeof v === "number"));
      const heat = view.heat && view.heat.panel === k ? view.heat : null;
      const ends = (panel.marks || []).map((m) => m[0]).concat(heat ? [10 ** heat.low, 10 ** (heat.low + heat.rows / heat.per_decade)] : []);
      const y = axis({ title: "", zero: true, log: panel.log }, colors, panel.unit, narrow, values.concat(ends));
      // Marks are no part of what an axis reaches over by itself.
      if (!panel.log && ends.length) y.range = [0, 1.08 * Math.max(...values.filter(isFinite), ...ends)];
      (panel.marks || []).forEach((m) => {
        const ref = k ? "y" + (k + 1) : "y";
        layout.shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, yref: ref, y0: m[0], y1: m[0], line: { color: colors.quiet, width: 1.25, dash: "dash" } });
        layout.annotations.push({ xref: "paper", x: 1, xanchor: "right", yref: ref, y: panel.log ? Math.log10(m[0]) : m[0], yanchor: k === 0 || panel.log ? "bottom" : "top", showarrow: false, text: plain(m[1]), font: { size: 10, color: colors.quiet } });
      });
      y.domain = [Math.max(top - each, 0), top];
      y.nticks = 4;
      y.title = undefined;
      layout["yaxis" + (k ? k + 1 : "")] = y;
      const own = view.lines.filter((l) => (l.panel || 0) === k);
      // On narrow screens as much of each name as has room in one line.
      const room = narrow ? Math.floor(42 / Math.min(own.length, 3)) - 2 : 40;
      const names = own.map((l) => '<span style="color:' + colors.palette[l.color % colors.palette.length] + '">━</span> ' + plain(ellipsis(l.name, room)));
      layout.annotations.push({
        xref: "paper", x: 0, xanchor: "left", yref: "paper", y: top, yanchor: "bottom", showarrow: false, align: "left",
        text: "<b>" + plain(panel.title) + "</b>" + (narrow ? "<br>" : "  ") + (narrow && names.length > 3 ? names.slice(0, 3).concat("…") : names).join("  "),
        font: { size: narrow ? 10 : 12, color: colors.text }, bgcolor: colors.ground, borderpad: 0,
      });
    });
    // Labels of marks stand below the heading of the first panel.
    layout.annotations.filter((a) => a.yref === "paper" && a.yanchor === "top").forEach((a) => { a.y -= head; });
    layout.xaxis.anchor = "y" + (n > 1 ? n : "");
  }

  // How many values lie in each cell of a grid of time and size; the darker, the more.
  function heat(spec, colors) {
    const n = spec.columns.length;
    const edges = (count, at) => Array.from({ length: count + 1 }, (_, i) => at(i));
    const z = Array.from({ length: spec.rows }, () => new Array(n).fill(null));
    spec.columns.forEach((column, x) => column[1].forEach((count, i) => { if (count) z[column[0] + i][x] = count; }));
    return {
      type: "heatmap", z: z.map((row) => row.map((v) => (v === null ? null : Math.log10(v + 1)))), customdata: z,
      x: edges(n, (i) => +(spec.grid[0] + i * spec.grid[1]).toPrecision(12)),
      y: edges(spec.rows, (i) => 10 ** (spec.low + i / spec.per_decade)),
      yaxis: spec.panel ? "y" + (spec.panel + 1) : "y", zmin: 0, showscale: false, hoverongaps: false,
      colorscale: [[0, colors.heat[0]], [1, colors.heat[1]]],
      hovertemplate: "%{x}<br>from %{y}<br>%{customdata} operations<extra></extra>",
    };
  }

  // The view on its side: what was beside each other is then one below the other.
  function onItsSide(view, x, y) {
    const line = (l) => Object.assign({}, l, {
      x: l.y, y: l.x, error_x: l.error_y, error_y: l.error_x, mode: l.mode === "bars" ? "across" : l.mode,
    });
    const rows = x.ticks ? x.ticks.length : 0;
    return Object.assign({}, view, {
      x: y, y: Object.assign({}, x, { upright: false, reversed: true }), height: 90 + 17 * rows,
      lines: view.lines.map(line), marks: view.marks_y, marks_y: view.marks,
    });
  }

  // Marks right through the plot, with their labels: `from` is the axis that they stand on.
  function mark(m, i, from, colors, rows, all, log) {
    // Lines are placed by values, labels of a logarithmic axis by exponents.
    const at = log ? Math.log10(m[0]) : m[0];
    const across = from === "y";
    const to = across ? "x" : "y";
    const shape = { type: "line", line: { color: colors.quiet, width: 1.5, dash: "dash" }, [to + "ref"]: "paper", [to + "0"]: 0, [to + "1"]: 1, [from + "0"]: m[0], [from + "1"]: m[0] };
    const label = { text: plain(m[1]), visible: m[1] !== "", showarrow: false, font: { size: 11, color: colors.quiet } };
    const place = across
      // The lower of two stands below its line, so that they do not cover each other.
      ? { xref: "paper", x: 1, xanchor: "right", y: at, yanchor: all.length > 1 && i === 0 ? "top" : "bottom" }
      : rows
      ? { x: at, xanchor: i === 0 && all.length > 1 ? "right" : "left", yref: "paper", y: 1, yanchor: "bottom" }
      : { x: at, xanchor: "left", yref: "paper", y: 1 - 0.07 * i, yanchor: "top", xshift: 3 };
    return [shape, Object.assign(label, place)];
  }

  function words(w, colors) {
    const [up, down] = [w.at.startsWith("above"), w.at.startsWith("below")];
    const [left, right] = [w.at.endsWith("left"), w.at.endsWith("right")];
    const xanchor = left ? "right" : right ? "left" : "center";
    const yanchor = up ? "bottom" : down ? "top" : "middle";
    const shift = [left ? -6 : right ? 6 : 0, up ? 6 : down ? -6 : 0];
    return {
      x: w.x, y: w.y, xanchor: xanchor, yanchor: yanchor, xshift: shift[0], yshift: shift[1], showarrow: false,
      text: plain(w.text), align: left ? "right" : right ? "left" : "center", bgcolor: colors.ground, borderpad: 0, font: { size: w.quiet ? 11 : 12, color: w.quiet ? colors.quiet : colors.text },
    };
  }

  // What Plotly needs for a view of a figure: traces and layout.
  function made(figure, number, colors, width) {
    const narrow = width < 520;
    let view = figure.views[number];
    if (narrow && view.turns) view = onItsSide(view, view.x || figure.x, view.y || figure.y);
    const [xSpec, ySpec] = [view.x || figure.x, view.y || figure.y];
    const xUnit = view.x_unit !== undefined ? view.x_unit : xSpec.unit;
    const traces = view.lines.map((line) => trace(line, colors, ySpec.reversed, ySpec.reversed || xSpec.upright));
    if (view.heat) traces.unshift(heat(view.heat, colors));
    const listed = traces.filter((t) => t.showlegend).length;
    const all = (key) => view.lines.flatMap((l) => (l[key] || []).filter((v) => typeof v === "number"));
    const x = axis(view.x_log ? Object.assign({}, xSpec, { log: true }) : xSpec, colors, xUnit, narrow, all("x"));
    const y = axis(ySpec, colors, ySpec.unit, narrow, all("y"));
    if (view.x_unit !== undefined) x.title.text = plain(view.label);
    const marks = (view.marks || []).map((m, i, all) => mark(m, i, "x", colors, ySpec.reversed, all, x.type === "log")).concat((view.marks_y || []).map((m, i, all) => mark(m, i, "y", colors, false, all, y.type === "log")));
    // Entries stand in columns as wide as the longest of them.
    const longest = traces.reduce((most, t) => (t.showlegend ? Math.max(most, t.name.length) : most), 0);
    const columns = narrow ? 1 : Math.max(1, Math.floor((width - 24) / (48 + 6 * longest)));
    const legendHeight = 20 * Math.ceil(listed / columns);
    const showLegend = listed > 0 && listed <= 24;
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colors.text },
      margin: { l: 12, r: 12, t: narrow && !(ySpec.reversed && marks.length) ? 12 : 30, b: 12 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colors.quiet, activecolor: colors.text }, xaxis: x, yaxis: y, showlegend: showLegend, bargap: 0.25, barmode: "overlay",
      hovermode: "closest", dragmode: narrow ? false : "zoom",
      legend: { orientation: "h", x: 0, xanchor: "left", yref: "container", y: 0, yanchor: "bottom", font: { size: 11 }, itemwidth: 30 },
      shapes: marks.map((m) => m[0]), annotations: marks.map((m) => m[1]).concat((view.words || []).map((w) => words(w, colors))),
    };
    const ground = Math.min(view.height || figure.height, printing ? TALL : Infinity);
    if (view.panels) stack(layout, view, colors, narrow, ground);
    const height = ground + (showLegend ? legendHeight : 0);
    layout.height = height;
    return { data: traces, layout: layout };
  }

  function draw(figure, number) {
    const canvas = document.getElementById(figure.id);
    const width = printing ? SHEET : canvas.clientWidth;
    const narrow = width < 520;
    const plot = made(figure, number, theme(), width);
    if (printing) plot.layout.width = SHEET;
    const range = /^(time|stack|trace)-/.test(figure.id) ? zoomed.get(figure.workload) : undefined;
    if (range) Object.assign(plot.layout.xaxis, { range: range, autorange: false });
    canvas.style.height = plot.layout.height + "px";
    const config = { displaylogo: false, responsive: true, displayModeBar: narrow ? false : "hover", modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d", "toImage"] };
    shown.set(figure.id, number);
    return library().react(canvas, plot.data, plot.layout, config).then(() => { follow(figure, canvas); });
  }

  // Plots over the time of one workload are zoomed together, those that are drawn later too.
  const zoomed = new Map();
  let following = false;
  function follow(figure, canvas) {
    if (!/^(time|stack|trace)-/.test(figure.id) || canvas.dataset.follows) return;
    canvas.dataset.follows = "yes";
    canvas.on("plotly_relayout", (change) => {
      const range = change["xaxis.range"] || (change["xaxis.range[0]"] === undefined ? null : [change["xaxis.range[0]"], change["xaxis.range[1]"]]);
      const whole = change["xaxis.autorange"] === true;
      if (following || (!range && !whole)) return;
      following = true;
      if (whole) zoomed.delete(figure.workload);
      else zoomed.set(figure.workload, range);
      const drawn = Array.from(shown.keys()).filter((id) => /^(time|stack|trace)-/.test(id) && id !== figure.id);
      const others = drawn.filter((id) => figureOf(id).workload === figure.workload).map((id) => document.getElementById(id));
      const after = whole ? { "xaxis.autorange": true } : { "xaxis.range": range };
      Promise.all(others.filter((o) => o.layout).map((o) => library().relayout(o, after))).finally(() => { following = false; });
    });
  }

  // Shows a view of a figure, also in its list of views.
  function choose(figure, number) {
    const select = document.querySelector('select[data-for="' + figure.id + '"]');
    if (select) select.value = String(number);
    return draw(figure, number);
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
    const plot = made(figure, number, PAPER, 1000);
    plot.layout.paper_bgcolor = plot.layout.plot_bgcolor = PAPER.ground;
    plot.layout.width = 1000;
    const size = { format: format, width: 1000, height: plot.layout.height, scale: format === "png" ? 2 : 1 };
    return library().toImage(plot, size).then((url) => {
      const [head, body] = [url.slice(0, url.indexOf(",")), url.slice(url.indexOf(",") + 1)];
      const bytes = head.endsWith(";base64") ? Uint8Array.from(atob(body), (c) => c.charCodeAt(0)) : decodeURIComponent(body);
      return new Blob([bytes], { type: format === "png" ? "image/png" : "image/svg+xml" });
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
    Array.from(shown).forEach(([id, number]) => draw(figureOf(id), number));
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
      if (link.dataset.view !== undefined) choose(figure, +link.dataset.view);
      else if (!shown.has(figure.id)) draw(figure, 0);
      const place = document.getElementById(figure.id + "-h");
      place.closest("figure").classList.add("proof");
      // Whoever goes on by the keyboard goes on from there.
      place.focus({ preventScroll: true });
    });
  });
  // A link to something within a closed part of the page opens it.
  function reveal() {
    const at = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    for (let part = at && at.closest("details:not([open])"); part; part = part.parentElement.closest("details:not([open])")) part.open = true;
    if (at) at.scrollIntoView();
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

  // What is folded or was never in the window would not be on paper. Long lists of numbers stay folded.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    printing = true;
    folded = Array.from(document.querySelectorAll("main details:not([open])")).filter((part) => !part.closest("#numbers, #conditions"));
    folded.forEach((part) => { part.open = true; });
    fit();
    lines.forEach((_, id) => draw(figureOf(id), shown.get(id) || 0));
    measure();
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    folded.forEach((part) => { part.open = false; });
    // A plot that had a width of its own keeps it, unless it is drawn anew.
    shown.forEach((_, id) => {
      const canvas = document.getElementById(id);
      library().purge(canvas);
      delete canvas.dataset.follows;
    });
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
      draw(figureOf(id), 0).then(() => { measure(); setTimeout(next, 0); });
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
    window.addEventListener("resize", look);
    window.addEventListener("toggle", look, true);
    look();
  }
  requestAnimationFrame(() => setTimeout(begin, 0));
  setTimeout(begin, 500);
})();
