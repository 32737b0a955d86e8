"use strict";
// Draws one view of a figure (src/html/figure.rs) as SVG. It depends on nothing but the browser and knows nothing of the
// page around it.
const Plot = (function () {
  const NARROW = 520;
  const [SMALL, TEXT] = [11, 12];
  const DASHES = ["", "7 4", "7 3 2 3", "2 3"];
  const SYMBOLS = ["circle", "square", "triangle-up", "cross"];
  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  const SHADES = 16;
  const ruler = document.createElement("canvas").getContext("2d");
  let serial = 0;

  function add(parent, name, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach((key) => { if (attributes[key] !== undefined) element.setAttribute(key, attributes[key]); });
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  }
  const px = (value) => Math.round(value * 10) / 10;
  const finite = (value) => typeof value === "number" && isFinite(value);
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  const span = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

  // Texts

  function widthOf(text, size, bold) {
    ruler.font = (bold ? "600 " : "") + size + "px " + getComputedStyle(document.body).fontFamily;
    return Math.max(...String(text).split("\n").map((line) => ruler.measureText(line).width));
  }
  const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
  // As much of a line as fits into a width.
  function fitted(text, width, size) {
    let length = text.length;
    while (length > 1 && widthOf(cut(text, length), size) > width) length -= Math.ceil(length / 20);
    return cut(text, length);
  }
  // Lines of text about a point; returns the box they take.
  function label(parent, text, x, y, { size = SMALL, color, anchor = "start", align = "middle", bold, ground }) {
    const [lines, row, width] = [String(text).split("\n"), 1.25 * size, widthOf(text, size, bold)];
    const top = y - (align === "top" ? 0 : align === "bottom" ? 1 : 0.5) * lines.length * row;
    const left = x - (anchor === "start" ? 0 : anchor === "end" ? 1 : 0.5) * width;
    // A rim in the colour of the ground keeps the text readable over lines.
    const rim = ground ? { stroke: ground, "stroke-width": 4, "stroke-linejoin": "round", "paint-order": "stroke" } : {};
    lines.forEach((line, i) => add(parent, "text", Object.assign({ x: px(x), y: px(top + (i + 0.5) * row + 0.35 * size), "font-size": size, fill: color, "text-anchor": anchor, "font-weight": bold ? 600 : undefined }, rim), line));
    return { left: left, right: left + width, top: top, bottom: top + lines.length * row };
  }

  // Numbers with SI prefixes. Only times have prefixes below 1: a thousandth of an operation is none.
  function prefixOf(size, unit) {
    if (!finite(size) || size === 0 || (!unit && size < 1e4)) return [1, ""];
    const fitting = PREFIXES.find(([factor]) => size >= factor * 0.9999);
    return fitting && (fitting[0] >= 1 || unit === "s") ? fitting : unit === "s" ? PREFIXES[PREFIXES.length - 1] : [1, ""];
  }
  function numbered(value, unit, [factor, prefix], step) {
    if (value === 0) return "0";
    const scaled = value / factor;
    const decimals = step === undefined ? 0 : clamp(Math.ceil(-Math.log10(step / factor) - 1e-6), 0, 20);
    const text = decimals > 6 || Math.abs(scaled) >= 1e6 ? scaled.toExponential(1) : step === undefined ? String(+scaled.toPrecision(4)) : scaled.toFixed(decimals);
    return text.replace("-", "−") + (unit && !unit.startsWith("/") ? "\u00a0" : "") + prefix + (unit || "");
  }
  const amount = (value, unit) => numbered(value, unit, prefixOf(Math.abs(value), unit));

  // Axes

  function extent(spec, values, room) {
    if (spec.range) return spec.range;
    if (spec.reversed && spec.ticks) return [spec.ticks.length - 0.4, -0.6];
    if (spec.upright) return [-0.7, spec.ticks.length - 0.3];
    let [low, high] = span(values.filter((v) => finite(v) && (v > 0 || !spec.log)));
    if (low > high) return spec.log ? [0.1, 10] : [0, 1];
    if (spec.log) return [low / 10 ** 0.1, high * 10 ** 0.1];
    const zero = spec.zero && low >= 0;
    if (zero) low = 0;
    const pad = low === high ? Math.abs(high) * 0.1 || 1 : (high - low) * room;
    return [zero ? 0 : low - pad, high + pad];
  }
  // `at` turns a value into a pixel, `value` a pixel into a value.
  function scale(spec, [low, high], from, to) {
    const [place, value] = spec.log ? [Math.log10, (p) => 10 ** p] : [(v) => v, (p) => p];
    const [a, b] = [place(low), place(high)];
    return {
      spec: spec, low: Math.min(low, high), high: Math.max(low, high), from: from, to: to,
      at: (v) => clamp(from + ((place(Math.max(v, spec.log ? 1e-300 : -Infinity)) - a) / (b - a)) * (to - from), -1e5, 1e5),
      value: (p) => value(a + ((p - from) / (to - from)) * (b - a)),
    };
  }
  function roundStep(rough) {
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.9999);
  }
  // Places and labels of ticks, at most about `most`; ticks without a label are short ones.
  function ticksOf(axis, most, narrow) {
    const { spec, low, high } = axis;
    const within = (v) => v >= low - (high - low) * 1e-9 && v <= high + (high - low) * 1e-9;
    if (spec.hidden) return [];
    if (spec.ticks && spec.ticks.length) {
      const named = spec.ticks.map(([at, text]) => [at, text.split("\n").map((line) => cut(line, narrow ? 18 : 40)).join("\n")]);
      const every = spec.reversed ? Math.ceil(named.length / 60) : 1;
      return named.filter(([at], i) => within(at) && i % every === 0);
    }
    if (spec.log) {
      const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
      const few = Math.log10(high / low) <= 1.3;
      const every = Math.max(1, Math.ceil(Math.log10(high / low) / most));
      const ticks = [];
      for (let power = first; power <= last; power += 1) {
        for (let digit = 1; digit <= 9; digit += 1) {
          const at = digit * 10 ** power;
          const named = digit === 1 ? power % every === 0 : few && (digit === 2 || digit === 5);
          if (within(at) && (named || every === 1)) ticks.push([at, named ? amount(at, spec.unit) : ""]);
        }
      }
      return ticks;
    }
    const step = roundStep((high - low) / most);
    const prefix = prefixOf(Math.max(Math.abs(low), Math.abs(high)), spec.unit);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) ticks.push([k * step, numbered(k * step, spec.unit, prefix, step)]);
    return ticks;
  }

  // Lines and markers

  // What is not seen is not drawn: of the points in one column of pixels the first, the lowest, the highest and the last
  // stay, so that a line of any length has at most four points to a column and loses no spike.
  function thinned(points, width) {
    if (points.length <= 4 * width) return points;
    const kept = [];
    for (let i = 0; i < points.length;) {
      if (!points[i]) { kept.push(points[i]); i += 1; continue; }
      let [end, low, high] = [i, i, i];
      const column = Math.floor(points[i][0]);
      for (; end < points.length && points[end] && Math.floor(points[end][0]) === column; end += 1) {
        if (points[end][1] < points[low][1]) low = end;
        if (points[end][1] > points[high][1]) high = end;
      }
      Array.from(new Set([i, low, high, end - 1])).sort((a, b) => a - b).forEach((k) => kept.push(points[k]));
      i = end;
    }
    return kept;
  }
  function curve(points, steps) {
    let [path, last] = ["", null];
    points.forEach((p) => {
      const [x, y] = p ? [px(p[0]), px(p[1])] : [];
      // A point between two gaps is a dot, by the round ends of the stroke.
      if (p) path += !last ? "M" + x + " " + y + "h0" : steps ? "H" + x + "V" + y : "L" + x + " " + y;
      last = p;
    });
    return path;
  }
  const isStroked = (symbol) => symbol === "cross" || symbol === "x" || symbol.endsWith("-open");
  function glyph(symbol, x, y, size) {
    const r = size / 2;
    const path = (...parts) => parts.map((part) => (typeof part === "number" ? px(part) : part)).join(" ");
    switch (symbol.replace("-open", "")) {
      case "square": return path("M", x - r, y - r, "h", size, "v", size, "h", -size, "z");
      case "diamond": return path("M", x - 1.2 * r, y, "L", x, y - 1.2 * r, x + 1.2 * r, y, x, y + 1.2 * r, "z");
      case "triangle-up": return path("M", x - 1.1 * r, y + r, "L", x, y - r, x + 1.1 * r, y + r, "z");
      case "cross": return path("M", x - r, y, "h", size, "M", x, y - r, "v", size);
      case "x": return path("M", x - r, y - r, "l", size, size, "M", x - r, y + r, "l", size, -size);
      case "line-ns": return path("M", x, y - r, "v", size);
      default: return path("M", x - r, y, "a", r, r, "0 1 0", size, 0, "a", r, r, "0 1 0", -size, 0, "z");
    }
  }
  function markers(parent, points, style, symbol, size) {
    const seen = new Set();
    const place = (p) => Math.round(p[0]) + " " + Math.round(p[1]);
    // Of thousands of markers those at the same pixel are one.
    const drawn = points.filter((p) => p && (points.length < 1000 || (!seen.has(place(p)) && seen.add(place(p)))));
    const path = drawn.map((p) => glyph(symbol, p[0], p[1], size)).join("");
    const paint = isStroked(symbol) ? { fill: "none", stroke: style.color, "stroke-width": 2 } : { fill: style.color, stroke: symbol === "diamond" ? style.ground : undefined };
    add(parent, "path", Object.assign({ d: path }, paint));
  }
  function whiskers(parent, line, panel, color) {
    let path = "";
    line.y.forEach((y, i) => {
      const [x, ex, ey] = [line.x[i], (line.error_x || [])[i], (line.error_y || [])[i]];
      if (!finite(y) || !finite(x)) return;
      const [at, up] = [px(panel.x.at(x)), px(panel.y.at(y))];
      if (ex) [x - ex[0], x + ex[1]].map((end) => px(panel.x.at(end))).forEach((end) => { path += "M" + at + " " + up + "H" + end + "m0 -3v6"; });
      if (ey) [y - ey[0], y + ey[1]].map((end) => px(panel.y.at(end))).forEach((end) => { path += "M" + at + " " + up + "V" + end + "m-3 0h6"; });
    });
    if (path) add(parent, "path", { d: path, fill: "none", stroke: color, "stroke-width": 2 });
  }
  // How a line looks: the colours come round again with other dashes and symbols.
  function styleOf(line, colors) {
    const round = Math.floor(line.color / colors.palette.length);
    return {
      color: line.quiet ? colors.quiet : colors.palette[line.color % colors.palette.length], ground: colors.ground,
      dash: line.faint ? DASHES[3] : DASHES[round % DASHES.length], symbol: line.symbol || SYMBOLS[round % SYMBOLS.length], size: line.size || 6,
    };
  }
  const isBar = (line) => line.mode === "bars" || line.mode === "across";
  const isMarked = (line) => line.mode === "markers" || line.mode === "joined";

  // Draws a line and returns where its values are, for the pointer.
  function series(parent, line, panel, colors) {
    const style = styleOf(line, colors);
    const group = add(parent, "g", { class: "series", opacity: line.faint ? 0.55 : undefined });
    if (isBar(line)) {
      const across = line.mode === "across";
      const [along, up] = across ? [panel.y, panel.x] : [panel.x, panel.y];
      const base = up.at(clamp(0, up.low, up.high));
      const boxes = line.y.map((_, i) => {
        const [at, value] = across ? [line.y[i], line.x[i]] : [line.x[i], line.y[i]];
        if (!finite(value) || !finite(at)) return null;
        const [a, b] = [along.at(at - line.half), along.at(at + line.half)].sort((p, q) => p - q);
        const [c, d] = [base, up.at(value)].sort((p, q) => p - q);
        return across ? [c, a, d, b] : [a, c, b, d];
      });
      const path = boxes.filter((b) => b).map((b) => "M" + px(b[0]) + " " + px(b[1]) + "H" + px(b[2]) + "V" + px(b[3]) + "H" + px(b[0]) + "z").join("");
      add(group, "path", { d: path, fill: style.color });
      whiskers(group, line, panel, colors.text);
      return { line: line, panel: panel, boxes: boxes };
    }
    const points = line.y.map((y, i) => (finite(y) && finite(line.x[i]) ? [panel.x.at(line.x[i]), panel.y.at(y)] : null));
    if (line.mode !== "markers") {
      add(group, "path", { d: curve(thinned(points, panel.x.to - panel.x.from), line.mode === "steps"), fill: "none", stroke: style.color, "stroke-width": 1.75, "stroke-dasharray": style.dash || undefined, "stroke-linecap": style.dash ? undefined : "round", "stroke-linejoin": "round" });
    }
    whiskers(group, line, panel, style.color);
    if (isMarked(line)) markers(group, points, style, style.symbol, style.size);
    // A line through a few values may be no more than a point, which has no length.
    else if (points.filter((p) => p).length <= 4) markers(group, points, style, "circle", 5);
    return { line: line, panel: panel, points: points };
  }
  // How many values lie in each cell of a grid of time and size; the darker, the more.
  function heat(parent, spec, panel, colors) {
    const most = Math.log10(1 + spec.columns.reduce((m, column) => Math.max(m, ...column[1]), 1));
    const paths = new Array(SHADES).fill("");
    spec.columns.forEach(([first, counts], k) => {
      const [left, right] = [k, k + 1].map((i) => px(panel.x.at(spec.grid[0] + i * spec.grid[1])));
      counts.forEach((count, i) => {
        if (!count) return;
        const [bottom, top] = [first + i, first + i + 1].map((row) => px(panel.y.at(10 ** (spec.low + row / spec.per_decade))));
        paths[Math.round((Math.log10(1 + count) / most) * (SHADES - 1))] += "M" + left + " " + bottom + "H" + right + "V" + top + "H" + left + "z";
      });
    });
    const rgb = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
    const [from, to] = colors.heat.map(rgb);
    const shade = (i) => "rgb(" + from.map((c, k) => Math.round(c + ((to[k] - c) * i) / (SHADES - 1))).join(",") + ")";
    const group = add(parent, "g", { "shape-rendering": "crispEdges" });
    paths.forEach((path, i) => { if (path) add(group, "path", { d: path, fill: shade(i) }); });
  }

  // The view on its side: what was beside each other is then one below the other.
  function turned(view, x, y) {
    const line = (l) => Object.assign({}, l, { x: l.y, y: l.x, error_x: l.error_y, error_y: l.error_x, mode: l.mode === "bars" ? "across" : l.mode });
    const upright = Object.assign({}, x, { upright: false, reversed: true });
    return [Object.assign({}, view, { height: 90 + 17 * (x.ticks || []).length, least: 76 + 11 * (x.ticks || []).length, lines: view.lines.map(line), marks: view.marks_y, marks_y: view.marks }), y, upright];
  }
  // A line with a number for each place: regular places are counted out, categories are numbered.
  function placed(line, names) {
    const regular = (i) => +(line.grid[0] + i * line.grid[1]).toPrecision(12);
    const named = (x) => {
      if (typeof x !== "string") return x;
      if (!names.includes(x)) names.push(x);
      return names.indexOf(x);
    };
    return Object.assign({}, line, { x: line.grid ? line.y.map((_, i) => regular(i)) : line.x ? line.x.map(named) : line.y.map((_, i) => i) });
  }
  // Half as wide as a bar is, in values.
  function halfWidth(line, ticks) {
    if (ticks) return 0.36;
    const places = (line.mode === "across" ? line.y : line.x).filter(finite).sort((a, b) => a - b);
    const gaps = places.map((v, i) => v - places[i - 1]).filter((gap) => gap > 0);
    return 0.46 * (gaps.length ? span(gaps)[0] : 1);
  }
  const keyOf = (line) => line.group || line.name;
  // Everything that an axis has to reach over: values, the ends of their intervals, and marks that are not far off.
  function reached(lines, key, marks) {
    const ends = lines.flatMap((l) => l[key].flatMap((v, i) => {
      const error = (l["error_" + key] || [])[i];
      return error ? [v - error[0], v + error[1]] : [v];
    })).concat(lines.some((l) => (key === "x" ? l.mode === "across" : l.mode === "bars")) ? [0] : [])
      .concat(lines.filter((l) => isBar(l) && (key === "x") === (l.mode === "bars")).flatMap((l) => l[key].flatMap((v) => [v - l.half, v + l.half])));
    const high = span(ends.filter(finite))[1];
    return ends.concat((marks || []).map((m) => m[0]).filter((m) => m > 0 && m <= 2 * high));
  }

  // Draws a view. Options: colors, width, tallest, left (height that is left for it: as far as it stays readable), hidden (names left out), range (of x), ground (a colour to lie on).
  function draw(figure, number, options) {
    const { colors, width, hidden = new Set() } = options;
    const narrow = width < NARROW;
    let view = figure.views[number];
    let [x, y] = [Object.assign({}, view.x || figure.x), Object.assign({}, view.y || figure.y)];
    if (narrow && view.turns) [view, x, y] = turned(view, x, y);
    if (view.x_unit !== undefined) [x.unit, x.title] = [view.x_unit, view.label];
    if (view.x_log) x.log = true;
    const names = [];
    const all = view.lines.map((line) => placed(line, names));
    if (names.length) Object.assign(x, { ticks: names.map((name, i) => [i, name]), range: [-0.6, names.length - 0.4] });
    all.filter(isBar).forEach((line) => { line.half = halfWidth(line, y.reversed || x.upright || names.length); });
    const lines = all.filter((line) => !hidden.has(keyOf(line)));
    const specs = view.panels || [{}];
    const stacked = Boolean(view.panels);

    // The legend, in columns as wide as the longest entry.
    const keys = all.filter((line, i) => !line.unlisted && all.findIndex((l) => !l.unlisted && keyOf(l) === keyOf(line)) === i);
    const listed = keys.length <= 24 ? keys : [];
    const entries = listed.map((line) => fitted(cut(line.name, 60), width - 56, SMALL));
    const column = 46 + Math.max(0, ...entries.map((text) => widthOf(text, SMALL)));
    const columns = Math.max(1, Math.floor((width - 12) / column));
    const legend = 20 * Math.ceil(listed.length / columns);
    const remaining = options.left === undefined ? Infinity : Math.max(options.left - legend, view.least || 150);
    const ground = Math.min(view.height || figure.height, options.tallest || Infinity, remaining);
    const height = ground + legend;

    // Room for ticks and titles.
    const atTop = y.reversed && (view.marks || []).some((m) => m[1]) ? 24 : 10;
    const xValues = view.heat ? [view.heat.grid[0], view.heat.grid[0] + view.heat.columns.length * view.heat.grid[1]] : [];
    const room = lines.some(isMarked) ? 0.04 : 0;
    const reach = options.range || extent(x, reached(lines, "x", y.reversed ? view.marks : []).concat(xValues), x.zero || stacked ? 0.02 : room);
    const draft = scale(x, reach, 0, Math.max(width - 100, 100));
    const xTicks = (axis) => {
      let ticks = [];
      for (let most = narrow ? 5 : 9; most >= 2; most -= 1) {
        ticks = ticksOf(axis, most, narrow);
        if (x.ticks || ticks.reduce((sum, t) => sum + (t[1] ? widthOf(t[1], SMALL) + 14 : 0), 0) < Math.abs(axis.to - axis.from)) break;
      }
      return ticks;
    };
    const tall = (text) => 1.25 * SMALL * text.split("\n").length;
    const below = xTicks(draft).reduce((most, t) => Math.max(most, x.upright ? widthOf(t[1], SMALL) : tall(t[1])), 0);
    const bottom = x.hidden ? 8 : below + 12 + (x.title ? 20 : 0);
    const head = stacked ? (narrow ? 34 : 22) : 0;
    const each = (ground - atTop - bottom) / specs.length;
    const panels = specs.map((spec, k) => {
      const top = atTop + k * each + head;
      const own = lines.filter((l) => (l.panel || 0) === k);
      const axis = stacked ? { unit: spec.unit, log: spec.log, zero: true } : y;
      const cells = view.heat && view.heat.panel === k && stacked ? [0, view.heat.rows / view.heat.per_decade].map((d) => 10 ** (view.heat.low + d)) : [];
      const ends = reached(own, "y", stacked ? [] : view.marks_y).concat(cells, (spec.marks || []).map((m) => m[0]));
      const body = stacked ? top + each - head - 6 : ground - bottom;
      const made = { top: top, bottom: body, y: scale(axis, extent(axis, ends, 0.06), body, top), marks: spec.marks || [], spec: spec, own: all.filter((l) => (l.panel || 0) === k) };
      made.ticks = ticksOf(made.y, axis.log ? Math.max(2, Math.floor((body - top) / 22)) : clamp(Math.floor((body - top) / (stacked ? 20 : 44)), 2, 8), narrow);
      return made;
    });
    const widest = Math.max(0, ...panels.flatMap((p) => p.ticks.map((t) => widthOf(t[1], SMALL))));
    const left = y.hidden ? 8 : widest + 12 + (!stacked && y.title ? 20 : 0);
    let right = width - (x.hidden ? 8 : 14);
    let across = scale(x, reach, left, right);
    let ticks = xTicks(across);
    const over = x.upright ? 0 : ticks.reduce((most, t) => Math.max(most, across.at(t[0]) + widthOf(t[1], SMALL) / 2 - width + 2), 0);
    if (over > 0) {
      right -= over;
      across = scale(x, reach, left, right);
      ticks = xTicks(across);
    }
    panels.forEach((panel) => { panel.x = across; });

    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    Object.entries({ class: "drawing", width: width, height: height, viewBox: "0 0 " + width + " " + height, "font-family": getComputedStyle(document.body).fontFamily }).forEach(([key, value]) => svg.setAttribute(key, value));
    if (options.ground) add(svg, "rect", { width: width, height: height, fill: options.ground });
    const rule = (parent, x1, y1, x2, y2, color, more) => add(parent, "line", Object.assign({ x1: px(x1), y1: px(y1), x2: px(x2), y2: px(y2), stroke: color }, more));
    const drawn = [];
    const keysDrawn = [];
    const last = panels[panels.length - 1];

    panels.forEach((panel) => {
      const clip = "clip" + (serial += 1);
      add(add(svg, "clipPath", { id: clip }), "rect", { x: px(left), y: px(panel.top - 1), width: px(right - left), height: px(panel.bottom - panel.top + 2) });
      if (!x.hidden) ticks.forEach(([at, text]) => { if (text) rule(svg, across.at(at), panel.top, across.at(at), panel.bottom, colors.grid); });
      let lowest = Infinity;
      panel.ticks.slice().sort((a, b) => panel.y.at(b[0]) - panel.y.at(a[0])).forEach(([at, text]) => {
        const place = panel.y.at(at);
        rule(svg, text ? left : left - 3, place, text ? right : left, place, colors.grid);
        // A label that would cover the one below it is left out.
        if (!text || place + tall(text) / 2 > lowest + 1) return;
        lowest = label(svg, text, left - 6, place, { color: colors.text, anchor: "end" }).top;
      });
      const inside = add(svg, "g", { "clip-path": "url(#" + clip + ")" });
      if (view.heat && view.heat.panel === panels.indexOf(panel)) heat(inside, view.heat, panel, colors);
      const later = [];
      const horizontal = stacked ? panel.marks : view.marks_y || [];
      horizontal.forEach(([at, text], i) => {
        const place = panel.y.at(at);
        if (place < panel.top - 1 || place > panel.bottom + 1) return;
        rule(inside, left, place, right, place, colors.quiet, { "stroke-width": 1.5, "stroke-dasharray": DASHES[1] });
        // The lower of two stands below its line, so that they do not cover each other; none leaves the plot.
        const under = (horizontal.length > 1 && i === 0 && panel.bottom - place > 16) || place - panel.top < 16;
        if (text) later.push(() => label(svg, text, right - 3, place + (under ? 2 : -2), { color: colors.quiet, anchor: "end", align: under ? "top" : "bottom", ground: colors.ground }));
      });
      (view.marks || []).forEach((m) => rule(inside, across.at(m[0]), panel.top, across.at(m[0]), panel.bottom, colors.quiet, { "stroke-width": 1.5, "stroke-dasharray": DASHES[1] }));
      lines.filter((line) => (line.panel || 0) === panels.indexOf(panel)).forEach((line) => drawn.push(series(inside, line, panel, colors)));
      if (!y.hidden || stacked) rule(svg, left, panel.top, left, panel.bottom, colors.grid);
      if (!x.hidden) rule(svg, left, panel.bottom, right, panel.bottom, colors.grid);
      later.forEach((act) => act());
      if (stacked) keysDrawn.push(...heading(svg, panel, { left: 2, right: width - 4, head: head, narrow: narrow, colors: colors, hidden: hidden }));
    });

    // Marks through all panels, labelled in the first one.
    (view.marks || []).forEach(([at, text], i, marks) => {
      const place = across.at(at);
      if (!text || place < left - 1 || place > right + 1) return;
      if (y.reversed) {
        // Above the rows; of two, one to each side of its line.
        const back = (i === 0 && marks.length > 1) || place + widthOf(text, SMALL) > width - 2;
        label(svg, text, clamp(place, back ? widthOf(text, SMALL) : 0, width), panels[0].top - 3, { color: colors.quiet, anchor: back ? "end" : "start", align: "bottom" });
      } else {
        const back = place + 5 + widthOf(text, SMALL) > right;
        label(svg, text, place + (back ? -5 : 5), panels[0].top + 2 + 15 * i, { color: colors.quiet, anchor: back ? "end" : "start", align: "top", ground: colors.ground });
      }
    });
    labels(svg, drawn, { left: left, right: width }, colors);
    (view.words || []).forEach((w) => {
      const [up, down, before, after] = [w.at.startsWith("above"), w.at.startsWith("below"), w.at.endsWith("left"), w.at.endsWith("right")];
      label(svg, w.text, across.at(w.x) + (before ? -7 : after ? 7 : 0), panels[0].y.at(w.y) + (up ? -7 : down ? 7 : 0), {
        size: w.quiet ? SMALL : TEXT, color: w.quiet ? colors.quiet : colors.text, ground: colors.ground,
        anchor: before ? "end" : after ? "start" : "middle", align: up ? "bottom" : down ? "top" : "middle",
      });
    });

    // Labels of the x axis that would cover the one before them are left out.
    let end = -Infinity;
    ticks.slice().sort((a, b) => across.at(a[0]) - across.at(b[0])).forEach(([at, text]) => {
      const place = across.at(at);
      if (!text) rule(svg, place, last.bottom, place, last.bottom + 3, colors.grid);
      else if (x.upright) {
        if (place - end < 11) return;
        add(svg, "text", { x: 0, y: 0, transform: "translate(" + px(place + 4) + " " + px(last.bottom + 6) + ") rotate(-90)", "font-size": SMALL, fill: colors.text, "text-anchor": "end" }, text);
        end = place;
      } else if (place - widthOf(text, SMALL) / 2 > end + 6) {
        end = label(svg, text, place, last.bottom + 6, { color: colors.text, anchor: "middle", align: "top" }).right;
      }
    });
    if (!x.hidden && x.title) label(svg, fitted(x.title, width - 8, TEXT), clamp((left + right) / 2, widthOf(fitted(x.title, width - 8, TEXT), TEXT) / 2 + 2, width), ground - 14, { size: TEXT, color: colors.quiet, anchor: "middle" });
    if (!stacked && !y.hidden && y.title) add(svg, "text", { transform: "translate(13 " + px((last.top + last.bottom) / 2) + ") rotate(-90)", "font-size": TEXT, fill: colors.quiet, "text-anchor": "middle" }, fitted(y.title, last.bottom - last.top, TEXT));

    entries.forEach((text, i) => {
      const [at, place] = [4 + (i % columns) * column, ground + 10 + 20 * Math.floor(i / columns)];
      keysDrawn.push(key(svg, listed[i], text, at, place, { colors: colors, hidden: hidden, size: SMALL }));
    });
    return { svg: svg, width: width, height: height, panels: panels, series: drawn, heat: view.heat, keys: keysDrawn, narrow: narrow, left: left, right: right, rows: Boolean(y.reversed) };
  }

  // Names beside markers: left of it, or else where neither another marker nor a name is in the way.
  function labels(svg, drawn, { left, right }, colors) {
    const marks = drawn.flatMap((one) => one.points || []).filter((p) => p);
    const taken = marks.length < 2000 ? marks.map((p) => ({ left: p[0] - 3, right: p[0] + 3, top: p[1] - 3, bottom: p[1] + 3 })) : [];
    const sides = [["end", "middle", -7, 0], ["start", "middle", 7, 0], ["middle", "bottom", 0, -5], ["middle", "top", 0, 5]];
    drawn.filter((one) => one.line.labels && one.points).forEach((one) => one.points.forEach((p, i) => {
      const text = one.line.labels[i];
      if (!p || !text) return;
      const wide = widthOf(text, SMALL);
      const isClear = ([anchor, align, dx, dy]) => {
        const from = p[0] + dx - (anchor === "end" ? wide : anchor === "middle" ? wide / 2 : 0);
        const top = p[1] + dy - (align === "bottom" ? 13 : align === "middle" ? 6 : 0);
        return from > left && from + wide < right && !taken.some((b) => b.left < from + wide && b.right > from && b.top < top + 12 && b.bottom > top);
      };
      const [anchor, align, dx, dy] = sides.find(isClear) || sides[0];
      taken.push(label(svg, text, p[0] + dx, p[1] + dy, { color: colors.text, anchor: anchor, align: align }));
    }));
  }

  // An entry of a legend: a piece of the line and its name. What is hidden is struck through.
  function key(svg, line, text, at, place, { colors, hidden, size }) {
    const style = styleOf(line, colors);
    const off = hidden.has(keyOf(line));
    const group = add(svg, "g", { class: "key", "data-key": keyOf(line), opacity: line.faint ? 0.8 : undefined, "text-decoration": off ? "line-through" : undefined });
    if (isBar(line)) add(group, "rect", { x: at + 6, y: place - 5, width: 14, height: 10, fill: style.color });
    else if (line.mode !== "markers") add(group, "line", { x1: at, y1: place, x2: at + 26, y2: place, stroke: style.color, "stroke-width": 2, "stroke-dasharray": style.dash || undefined });
    if (isMarked(line)) markers(group, [[at + 13, place]], style, style.symbol, Math.min(style.size, 12));
    const box = label(group, text, at + 32, place, { size: size, color: off ? colors.quiet : colors.text });
    add(group, "rect", { x: at, y: place - 9, width: px(box.right - at), height: 18, fill: "transparent" });
    return group;
  }
  // The title of a panel and the names of its lines; on narrow screens these stand below it, as many as have room.
  function heading(svg, panel, { left, right, head, narrow, colors, hidden }) {
    const bar = panel.top - head;
    const title = label(svg, panel.spec.title, left, bar + 9, { size: TEXT, color: colors.text, bold: true });
    let [at, place] = narrow ? [left, bar + 24] : [title.right + 14, bar + 9];
    const made = [];
    const own = panel.own.filter((line, i, all) => all.findIndex((l) => keyOf(l) === keyOf(line)) === i);
    for (const line of own) {
      const text = fitted(line.name, narrow ? Math.max((right - left) / Math.min(own.length, 3) - 48, 30) : 280, SMALL);
      if (at + 34 + widthOf(text, SMALL) > right - (line === own[own.length - 1] ? 0 : 14)) {
        label(svg, "…", at, place, { color: colors.text });
        break;
      }
      made.push(key(svg, line, text, at, place, { colors: colors, hidden: hidden, size: SMALL }));
      at += 48 + widthOf(text, SMALL);
    }
    return made;
  }

  return { draw: draw, add: add, amount: amount, finite: finite, clamp: clamp };
})();
