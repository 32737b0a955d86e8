"use strict";
(function () {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const byId = new Map(figures.map((f) => [f.id, f]));
  const shown = new Map();
  // Okabe and Ito's colours without yellow and black, which vanish on one of the grounds.
  const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
  const DARK = ["#6cb6f0", "#f0824a", "#3dc9a0", "#e0a3c8", "#f2b84b", "#a5d8f7"];
  const DASHES = ["solid", "dash", "dashdot", "dot"];
  const SYMBOLS = ["circle", "square", "triangle-up", "cross"];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let printing = false;

  function theme() {
    const isDark = dark.matches && !printing;
    const style = getComputedStyle(root);
    const of = (name) => style.getPropertyValue(name).trim();
    return { palette: isDark ? DARK : LIGHT, text: of("--text"), quiet: of("--quiet"), grid: of("--grid"), ground: of("--ground") };
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
    if (spec.ticks && spec.ticks.length) {
      made.ticksuffix = "";
      let ticks = spec.ticks;
      if (spec.reversed) {
        // Labels of categories: not more than fit.
        const step = Math.ceil(ticks.length / 60);
        ticks = ticks.filter((_, i) => i % step === 0);
        made.range = [spec.ticks.length - 0.4, -0.6];
        made.zeroline = false;
      }
      made.tickmode = "array";
      made.tickvals = ticks.map((t) => t[0]);
      made.ticktext = ticks.map((t) => t[1].split("\n").map((l) => plain(ellipsis(l, narrow ? 18 : 40))).join("<br>"));
    }
    return made;
  }

  function trace(line, colors, figure, xUnit) {
    const palette = colors.palette;
    const color = palette[line.color % palette.length];
    const round = Math.floor(line.color / palette.length);
    const n = line.y.length;
    const x = line.grid ? line.y.map((_, i) => +(line.grid[0] + i * line.grid[1]).toPrecision(12)) : line.x;
    const made = {
      x: x, y: line.y, name: plain(ellipsis(line.name, 60)), showlegend: !line.unlisted,
      opacity: line.faint ? 0.55 : 1,
      hovertemplate: "%{x}<br>%{y}<extra>" + plain(line.name) + "</extra>",
    };
    if (figure.y.reversed) made.hovertemplate = "%{x}<extra>" + plain(line.name) + "</extra>";
    if (line.group) made.legendgroup = line.group;
    if (line.text && line.text.length) {
      made.text = line.text.length === n ? line.text.map(plain) : plain(line.text[0]);
      made.hovertemplate = made.hovertemplate.replace("<extra>", "<br>" + plain(line.what || "") + "%{text}<extra>");
    }
    if (line.mode === "bars") {
      return Object.assign(made, { type: "bar", marker: { color: color } });
    }
    made.type = "scatter";
    if (line.mode === "markers") {
      made.mode = "markers";
      made.marker = {
        color: color, symbol: line.symbol || SYMBOLS[round % SYMBOLS.length], size: line.size || 6,
        line: { width: line.symbol === "circle-open" ? 2 : line.symbol === "diamond" ? 1 : 0, color: line.symbol === "diamond" ? colors.ground : color },
      };
      if (line.error_x) {
        made.error_x = { type: "data", array: line.error_x.map((e) => e === null ? 0 : e), color: color, thickness: 2, width: 5 };
      }
    } else {
      made.mode = "lines";
      made.line = { color: color, width: 1.75, dash: line.faint ? "dot" : DASHES[round % DASHES.length] };
      if (line.mode === "steps") made.line.shape = "hv";
    }
    return made;
  }

  function draw(figure, number) {
    const canvas = document.getElementById(figure.id);
    const view = figure.views[number];
    const colors = theme();
    const narrow = canvas.clientWidth < 520;
    const xUnit = view.x_unit !== undefined ? view.x_unit : figure.x.unit;
    const traces = view.lines.map((line) => trace(line, colors, figure, xUnit));
    const listed = traces.filter((t) => t.showlegend).length;
    const all = (key) => view.lines.flatMap((l) => (l[key] || []).filter((v) => typeof v === "number"));
    const x = axis(view.x_log ? Object.assign({}, figure.x, { log: true }) : figure.x, colors, xUnit, narrow, all("x"));
    const y = axis(figure.y, colors, figure.y.unit, narrow, all("y"));
    if (view.x_unit !== undefined) x.title.text = plain(view.label);
    const legendRows = narrow ? listed : Math.ceil(listed / 2);
    const showLegend = listed > 0 && listed <= 24;
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colors.text },
      margin: { l: 12, r: 12, t: narrow ? 12 : 30, b: 12 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colors.quiet, activecolor: colors.text }, xaxis: x, yaxis: y, showlegend: showLegend, bargap: 0.25,
      hovermode: "closest", dragmode: narrow ? false : "zoom",
      legend: { orientation: "h", x: 0, xanchor: "left", yref: "container", y: 0, yanchor: "bottom", font: { size: 11 }, itemwidth: 30 },
      shapes: (view.marks || []).map((m) => ({ type: "line", x0: m[0], x1: m[0], yref: "paper", y0: 0, y1: 1, line: { color: colors.quiet, width: 1.5, dash: "dash" } })),
      annotations: (view.marks || []).map((m, i) => ({ x: m[0], yref: "paper", y: 1 - 0.07 * i, yanchor: "top", xanchor: "left", text: plain(m[1]), showarrow: false, font: { size: 11, color: colors.quiet }, xshift: 3 })),
    };
    const height = figure.height + (showLegend ? Math.min(legendRows, 12) * 20 : 0);
    canvas.style.height = height + "px";
    layout.height = height;
    const config = { displaylogo: false, responsive: true, displayModeBar: narrow ? false : "hover", modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };
    shown.set(figure.id, number);
    return Plotly.react(canvas, traces, layout, config);
  }

  function redraw() {
    return Promise.all(figures.map((f) => draw(f, shown.get(f.id) || 0)));
  }

  function sortable(table) {
    table.querySelectorAll("th").forEach((th, column) => {
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

  function measure(drawn) {
    root.dataset.plots = String(drawn);
    root.dataset.expected = String(figures.length);
    root.dataset.scrollWidth = String(root.scrollWidth);
    root.dataset.clientWidth = String(root.clientWidth);
  }

  document.querySelectorAll("table").forEach((table) => { if (table.tBodies[0].rows.length > 1) sortable(table); });
  document.querySelectorAll("select[data-for]").forEach((select) => {
    select.addEventListener("change", () => draw(byId.get(select.dataset.for), +select.value));
  });
  dark.addEventListener("change", redraw);
  window.addEventListener("beforeprint", () => { printing = true; redraw(); });
  window.addEventListener("afterprint", () => { printing = false; redraw(); });

  // One after the other, so that the page can be read and scrolled meanwhile.
  let drawn = 0;
  function next() {
    if (drawn === figures.length) {
      measure(drawn);
      root.dataset.done = "true";
      return;
    }
    draw(figures[drawn], 0).then(() => {
      drawn += 1;
      measure(drawn);
      setTimeout(next, 0);
    });
  }
  next();
})();
