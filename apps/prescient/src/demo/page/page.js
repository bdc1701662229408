// Draws the events of `/frames`: one `hello`, then a frame per tick.

const $ = (id) => document.getElementById(id);

// Columns of a creature's row.
const [X, Y, ALONG, DOWN, MOOD, KIND, NUMBER] = [0, 1, 2, 3, 4, 5, 6];
const [MINNOW, PERCH, CARP, TURTLE, LILY] = [0, 1, 2, 3, 4];
const LENGTH = { [MINNOW]: 17, [PERCH]: 24, [CARP]: 34 };
const SECONDS = 60;
const RIPPLE_LASTS = 1300;
// Opacity of creatures that are shown as of an earlier tick than the rest.
const PALE = 0.45;

let world = null;
let frame = null;
let chosen = clientOfAddress() ?? 5;
let source = null;
let history = [];
let colours = {};
let textsAt = 0;
let hasEnded = false;

// One drawn pond, with its last two frames for interpolation.
class Pond {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.clear();
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
  }

  clear() {
    this.before = new Map();
    this.now = new Map();
    this.late = new Set();
    this.turned = new Map();
    this.ripples = [];
    this.at = 0;
  }

  resize() {
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * scale));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * scale));
  }

  take(rows, ages, ripples, time) {
    this.before = this.now;
    this.now = new Map(rows.map((row) => [row[NUMBER], row]));
    this.late = new Set(rows.filter((_, at) => ages[at] > 0));
    for (const [x, y] of ripples) this.ripples.push({ x: x / world.steps, y: y / world.steps, start: time });
    this.at = time;
  }

  // The interpolated position of a creature between the last two frames.
  position(row, time) {
    const last = this.before.get(row[NUMBER]) ?? row;
    const part = Math.min(1, ((time - this.at) * world.hz) / 1000);
    const between = (column) => (last[column] + (row[column] - last[column]) * part) / world.steps;
    return [between(X), between(Y)];
  }

  // The drawn heading, which follows the real one smoothly.
  heading(row, passed) {
    const number = row[NUMBER];
    const known = this.turned.get(number);
    const still = row[ALONG] === 0 && row[DOWN] === 0;
    const wanted = still ? (known ?? number) : Math.atan2(row[DOWN], row[ALONG]);
    if (known === undefined) {
      this.turned.set(number, wanted);
      return wanted;
    }
    const turn = Math.atan2(Math.sin(wanted - known), Math.cos(wanted - known));
    const heading = known + turn * (1 - Math.exp(-passed / 90));
    this.turned.set(number, heading);
    return heading;
  }

  draw(time, passed, outlines) {
    const { context, canvas } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const scale = canvas.width / world.size[0];
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const rows = [...this.now.values()].sort((a, b) => depth(a) - depth(b));
    for (const row of rows) {
      const [x, y] = this.position(row, time);
      context.save();
      context.translate(x, y);
      if (this.late.has(row)) context.globalAlpha = PALE;
      drawShade(context, row);
      context.rotate(this.heading(row, passed));
      (DRAWINGS[row[KIND]] ?? drawFish)(context, row, time);
      context.restore();
    }
    if (outlines) this.outline(outlines, time, scale);
    this.ripples = this.ripples.filter((ripple) => time - ripple.start < RIPPLE_LASTS);
    for (const ripple of this.ripples) drawRipple(context, ripple, (time - ripple.start) / RIPPLE_LASTS);
  }

  outline(truth, time, scale) {
    const { context } = this;
    context.strokeStyle = colours.ink;
    context.lineWidth = 1 / scale;
    context.globalAlpha = 0.75;
    for (const row of truth.now.values()) {
      if (row[KIND] === LILY) continue;
      const [x, y] = truth.position(row, time);
      context.beginPath();
      context.arc(x, y, (LENGTH[row[KIND]] ?? 30) / 2, 0, 2 * Math.PI);
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}

// Turtles below fish, large fish below small ones, lilies on top.
function depth(row) {
  return { [TURTLE]: 0, [CARP]: 1, [PERCH]: 2, [MINNOW]: 3, [LILY]: 4 }[row[KIND]] ?? 3;
}

// Shadows of objects above the water are further away.
function drawShade(context, row) {
  context.fillStyle = colours.shade;
  if (row[KIND] === LILY) oval(context, 4, 6, lilySize(row), lilySize(row), 0);
  if (row[KIND] === TURTLE) oval(context, 3, 5, 15, 13, 0);
}

function drawFish(context, row, time) {
  const length = LENGTH[row[KIND]] ?? 20;
  const stirred = row[MOOD] === 1;
  const beat = Math.sin(time / (stirred ? 35 : 110) + row[NUMBER] * 1.7);
  context.fillStyle = colours[["minnow", "perch", "carp"][row[KIND]] ?? "minnow"];
  const half = length / 2;
  const wide = length * 0.21;
  context.beginPath();
  context.moveTo(half, 0);
  context.bezierCurveTo(half * 0.55, wide * 1.25, -half * 0.2, wide * 1.1, -half * 0.62, beat * wide * 0.25);
  context.bezierCurveTo(-half * 0.2, -wide * 1.1, half * 0.55, -wide * 1.25, half, 0);
  context.fill();
  const tail = beat * wide * 0.9;
  context.beginPath();
  context.moveTo(-half * 0.5, beat * wide * 0.2);
  context.lineTo(-half * 1.15, tail - wide);
  context.lineTo(-half * 0.9, tail);
  context.lineTo(-half * 1.15, tail + wide);
  context.fill();
  if (row[KIND] === CARP) {
    context.globalAlpha *= 0.35;
    context.fillStyle = colours.card;
    context.beginPath();
    context.ellipse(half * 0.1, wide * 0.1, half * 0.3, wide * 0.45, 0.4, 0, 2 * Math.PI);
    context.fill();
  }
}

function drawTurtle(context, row, time) {
  const hidden = row[MOOD] === 1;
  const paddle = hidden ? 0 : Math.sin(time / 320 + row[NUMBER]);
  context.fillStyle = colours.turtle;
  if (!hidden) {
    oval(context, 17, 0, 6, 4.5, 0);
    oval(context, 8, 12, 8, 3.4, 0.9 + paddle * 0.35);
    oval(context, 8, -12, 8, 3.4, -0.9 - paddle * 0.35);
    oval(context, -11, 9, 5.5, 2.8, 2.3);
    oval(context, -11, -9, 5.5, 2.8, -2.3);
  }
  context.fillStyle = colours["turtle-shell"];
  oval(context, 0, 0, 15, 12, 0);
  context.strokeStyle = colours.turtle;
  context.lineWidth = 1.5;
  context.beginPath();
  context.ellipse(0, 0, 8.5, 6.5, 0, 0, 2 * Math.PI);
  context.stroke();
}

function drawLily(context, row) {
  const size = lilySize(row);
  context.fillStyle = colours.lily;
  context.beginPath();
  context.moveTo(0, 0);
  context.arc(0, 0, size, 0.28, 2 * Math.PI - 0.28);
  context.fill();
  context.strokeStyle = colours["lily-vein"];
  context.lineWidth = 1.1;
  context.beginPath();
  for (let vein = 1; vein < 7; vein += 1) {
    const angle = (vein * 2 * Math.PI) / 7;
    context.moveTo(0, 0);
    context.lineTo(Math.cos(angle) * size * 0.82, Math.sin(angle) * size * 0.82);
  }
  context.stroke();
  if (row[MOOD] !== 1) return;
  context.fillStyle = colours.bloom;
  for (let petal = 0; petal < 6; petal += 1) {
    const angle = (petal * Math.PI) / 3;
    oval(context, Math.cos(angle) * 6, Math.sin(angle) * 6, 6, 3, angle);
  }
  context.fillStyle = colours.card;
  oval(context, 0, 0, 3, 3, 0);
}

function lilySize(row) {
  return 15 + ((row[NUMBER] * 7) % 9);
}

const DRAWINGS = { [TURTLE]: drawTurtle, [LILY]: drawLily };

function drawRipple(context, { x, y }, age) {
  context.strokeStyle = colours.ripple;
  for (const behind of [0, 0.22]) {
    const part = age - behind;
    if (part <= 0) continue;
    context.globalAlpha = 0.7 * (1 - age) * (1 - behind);
    context.lineWidth = 2.2;
    context.beginPath();
    context.arc(x, y, 6 + 58 * Math.sqrt(part), 0, 2 * Math.PI);
    context.stroke();
  }
  context.globalAlpha = 1;
}

function oval(context, x, y, width, height, turn) {
  context.beginPath();
  context.ellipse(x, y, width, height, turn, 0, 2 * Math.PI);
  context.fill();
}

// Draws the bytes per second of the last minute, and the rate of raw state as a line.
function drawHistory() {
  const canvas = $("history");
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
  if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const rates = history[chosen] ?? [];
  const raw = rawRate();
  const top = Math.max(raw, ...rates) * 1.06;
  const level = (rate) => height - 1 - (rate / top) * (height - 2);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(0, height - 0.5);
  context.lineTo(width, height - 0.5);
  context.stroke();
  context.strokeStyle = colours.raw;
  context.fillStyle = colours.raw;
  context.lineWidth = 1.5;
  context.setLineDash([5, 4]);
  context.beginPath();
  context.moveTo(0, level(raw));
  context.lineTo(width, level(raw));
  context.stroke();
  context.setLineDash([]);
  context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  context.textBaseline = "top";
  context.fillText("raw state", 0, level(raw) + 4);
  if (rates.length === 0) return;
  const across = (index) => width - ((rates.length - 1 - index) * width) / (SECONDS - 1);
  context.strokeStyle = colours.accent;
  context.fillStyle = colours["accent-soft"];
  context.lineWidth = 2;
  context.lineJoin = "round";
  context.beginPath();
  rates.forEach((rate, index) => context.lineTo(across(index), level(rate)));
  context.stroke();
  context.lineTo(across(rates.length - 1), height);
  context.lineTo(across(0), height);
  context.fill();
}

function rawRate() {
  return world.raw_bytes * frame.truth.length * world.hz;
}

const whole = new Intl.NumberFormat("en");
const kilobytes = (bytes) => (bytes / 1000).toFixed(1);
const milliseconds = (span) => (span === null ? "–" : `${span < 10 ? span.toFixed(1) : Math.round(span)} ms`);
const percent = (share) => `${share < 10 ? share.toFixed(1) : Math.round(share)} %`;
const ticks = (count) => (count === null ? "–" : `${count} ${count === 1 ? "tick" : "ticks"}`);
const words = { joining: "joining", silent: "no packets", live: "" };

function showTexts() {
  const client = frame.clients[chosen];
  const raw = rawRate();
  const texts = {
    tick: whole.format(frame.tick),
    shown: frame.shown === null ? "–" : whole.format(frame.shown),
    behind: client.lag === null ? "" : `, ${client.lag} behind`,
    state: words[client.state],
    rate: kilobytes(client.rate),
    ratio: client.rate > 0 ? `${(raw / client.rate).toFixed(raw > 10 * client.rate ? 0 : 1)} times` : "",
    against: client.rate > 0 ? `less than raw state, ${kilobytes(raw)} kB/s` : `raw state would be ${kilobytes(raw)} kB/s`,
    wrong: whole.format(client.wrong),
    compared: whole.format(client.compared),
    "compared-all": whole.format(frame.clients.reduce((sum, { compared }) => sum + compared, 0)),
    late: client.late > 0 ? ` ${whole.format(client.late)} were of an earlier tick, because a packet was full.` : "",
    "round-trip": milliseconds(client.round_trip),
    loss: percent(client.loss),
    lag: ticks(client.lag),
    creatures: `${frame.view.length} of ${frame.truth.length}`,
    "raw-sum": `${world.raw_bytes} × ${frame.truth.length} × ${world.hz} = ${whole.format(raw)} bytes per second`,
  };
  for (const [id, text] of Object.entries(texts)) write($(id), text);
  $("wrong").className = client.wrong === 0 ? "right" : "off";
  frame.clients.forEach((other, number) => {
    const row = $("clients").rows[number];
    row.className = number === chosen ? "chosen" : "";
    const cells = [kilobytes(other.rate), milliseconds(other.round_trip), percent(other.loss),
      other.state === "live" ? whole.format(other.lag ?? 0) : other.state, whole.format(other.wrong)];
    cells.forEach((text, cell) => write(row.cells[cell + 2], text));
  });
}

// Writes only changes, to avoid needless layout.
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "card", "line", "accent", "accent-soft", "raw", "shade", "ripple", "minnow", "perch", "carp",
    "turtle", "turtle-shell", "lily", "lily-vein", "bloom"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

function showClients() {
  const same = world.clients.length === $("client").options.length;
  if (!same) {
    $("client").replaceChildren(...world.clients.map(({ name, link }, number) => {
      const option = document.createElement("option");
      [option.value, option.textContent] = [number, `${name}, ${link}`];
      return option;
    }));
    $("clients").replaceChildren(...world.clients.map(({ name, link }, number) => {
      const row = document.createElement("tr");
      const button = document.createElement("button");
      [button.type, button.textContent] = ["button", name];
      button.addEventListener("click", () => choose(number));
      row.insertCell().append(button);
      row.insertCell().textContent = link;
      for (let cell = 0; cell < 5; cell += 1) row.insertCell();
      [1, 3, 4].forEach((cell) => row.cells[cell].classList.add("wide"));
      [2, 3, 4, 5, 6].forEach((cell) => row.cells[cell].classList.add("number"));
      return row;
    }));
    history = world.clients.map(() => []);
  }
  $("client").value = chosen;
}

function clientOfAddress() {
  const found = /^#client=(\d+)$/.exec(location.hash);
  return found ? Number(found[1]) : null;
}

function choose(number) {
  chosen = number;
  window.history.replaceState(null, "", `#client=${number}`);
  view.clear();
  connect();
}

function connect() {
  source?.close();
  source = new EventSource(`/frames?client=${chosen}`);
  source.addEventListener("hello", (event) => {
    world = JSON.parse(event.data);
    chosen = world.client;
    frame = null;
    hasEnded = false;
    say("");
    showClients();
  });
  source.addEventListener("frame", (event) => take(JSON.parse(event.data)));
  source.addEventListener("bye", () => {
    hasEnded = true;
    wait();
  });
  source.onerror = wait;
}

function take(next) {
  const time = performance.now();
  frame = next;
  truth.take(frame.truth, [], frame.ripples.truth, time);
  view.take(frame.view, frame.ages, frame.ripples.view, time);
  if (frame.tick % world.hz === 0) {
    frame.clients.forEach(({ rate }, number) => {
      history[number].push(rate);
      if (history[number].length > SECONDS) history[number].shift();
    });
    drawHistory();
  }
  if (time - textsAt > 200) {
    textsAt = time;
    showTexts();
  }
}

// Shows a notice, and reconnects in a while.
function wait() {
  source.close();
  say(hasEnded
    ? "The demo has ended. Start it again with “cargo run --release”, and this page reconnects."
    : "The demo does not answer. This page retries every few seconds.");
  setTimeout(connect, 3000);
}

function say(message) {
  const notice = $("notice");
  notice.hidden = message === "";
  write(notice, message);
}

let drawn = performance.now();
function draw(time) {
  if (frame) {
    const passed = Math.min(100, time - drawn);
    truth.draw(time, passed, null);
    view.draw(time, passed, $("outlines").checked ? truth : null);
  }
  drawn = time;
  requestAnimationFrame(draw);
}

const truth = new Pond($("truth"));
const view = new Pond($("view"));
readColours();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);
$("client").addEventListener("change", (event) => choose(Number(event.target.value)));
window.addEventListener("hashchange", () => choose(clientOfAddress() ?? chosen));
connect();
requestAnimationFrame(draw);
