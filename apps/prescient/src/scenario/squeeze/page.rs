//! The page of a squeeze: charts and a replay, without anything from elsewhere.

use std::fmt::Write;

use prescient_sim::link::Time;
use serde_json::{Value, json};

use super::Run;
use super::figures::Span;
use super::units::priority;

/// A page that compares runs.
pub(super) fn page(runs: &[Run], span: Span) -> String {
    let start = runs
        .first()
        .and_then(|run| run.log.ticks.first())
        .map(|tick| tick.at);
    let start = start.unwrap_or(span.begin);
    let data = json!({
        "limit": [span.begin.since(start).as_secs_f64(), span.end.since(start).as_secs_f64()],
        "priorities": (0..runs.first().map_or(0, |run| run.log.shown.len())).map(priority).collect::<Vec<_>>(),
        "runs": runs.iter().map(data_of).collect::<Vec<_>>(),
    });
    let mut page = String::new();
    // A script must not end inside its data.
    let data = data.to_string().replace("</", "<\\/");
    let _ = writeln!(
        page,
        "{HEAD}<script>const data = {data};\n{SCRIPT}</script></body></html>"
    );
    page
}

fn data_of(run: &Run) -> Value {
    let start = run.log.ticks.first().map_or(Time::ZERO, |tick| tick.at);
    let seconds = |at: Time| at.since(start).as_secs_f64();
    let rounded = |number: f64| (number * 1000.0).round() / 1000.0;
    let ticks = run.errors.ticks.iter().enumerate();
    let error: Vec<f64> = ticks
        .map(|(tick, _)| rounded(run.errors.of_tick(tick)))
        .collect();
    let by = |is_meant: &dyn Fn(usize, usize) -> bool| -> Vec<f64> {
        let mean = |(tick, errors): (usize, &super::figures::ErrorsOfTick)| {
            let meant = errors
                .units
                .iter()
                .enumerate()
                .filter(|(unit, _)| is_meant(tick, *unit));
            let (sum, count) = meant.fold((0.0, 0u32), |(sum, count), (_, error)| {
                (sum + f64::from(*error), count + 1)
            });
            rounded(sum / f64::from(count.max(1)))
        };
        run.errors.ticks.iter().enumerate().map(mean).collect()
    };
    let priorities: Vec<Vec<f64>> = (0..4)
        .map(|wanted| by(&|_, unit| priority(unit) == wanted))
        .collect();
    let distance = |tick: usize, unit: usize| {
        let truth = &run.log.ticks[tick].truth;
        let ([x, y], [a, b]) = (truth[unit], truth[0]);
        (x - a).hypot(y - b)
    };
    let bounds = [0.0, 15.0, 30.0, 50.0, f32::MAX];
    let distances: Vec<Vec<f64>> = bounds
        .windows(2)
        .map(|bounds| by(&|tick, unit| (bounds[0]..bounds[1]).contains(&distance(tick, unit))))
        .collect();
    let position = |[x, y]: &[f32; 2]| [(x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0];
    let every = 3;
    let truth: Vec<Vec<[f32; 2]>> = (run.log.ticks.iter().step_by(every))
        .map(|tick| tick.truth.iter().map(position).collect())
        .collect();
    let shown: Vec<Vec<[f32; 2]>> = (run.errors.ticks.iter().step_by(every))
        .map(|tick| tick.shown.iter().map(position).collect())
        .collect();
    let queue: Vec<[f64; 2]> = (run.log.departures.iter())
        .map(|departure| {
            [
                rounded(seconds(departure.sent)),
                rounded(departure.waited.as_secs_f64() * 1000.0),
            ]
        })
        .collect();
    json!({
        "name": run.name,
        "figures": run.figures,
        "time": run.log.ticks.iter().map(|tick| rounded(seconds(tick.at))).collect::<Vec<_>>(),
        "error": error,
        "by_priority": priorities,
        "by_distance": distances,
        "rate": run.log.ticks.iter().map(|tick| tick.rate).collect::<Vec<_>>(),
        "lost": run.log.ticks.iter().map(|tick| tick.lost).collect::<Vec<_>>(),
        "plan": run.log.ticks.iter().map(|tick| tick.report.map_or(0, |report| report.plan_step)).collect::<Vec<_>>(),
        "queue": queue,
        "every": every,
        "truth": truth,
        "shown": shown,
    })
}

const HEAD: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
<title>prescient scenario squeeze</title><style>\
body{font:14px system-ui,sans-serif;margin:2em auto;max-width:960px;color:#222;background:#fff}\
canvas{width:100%;height:220px;border:1px solid #ccc}h2{font-size:16px;margin:1.4em 0 .3em}\
#replay{height:auto;aspect-ratio:2/1}table{border-collapse:collapse}td,th{padding:.2em .8em;\
border:1px solid #ccc;text-align:left}</style></head><body><h1>98 units through a bottleneck</h1>\
<p>The shaded time is the limit. Errors are distances between what the client shows and what the \
server had at the same tick, in units of the world.</p><table id=\"figures\"></table>";

const SCRIPT: &str = r##"
const colours = ["#1868c0", "#c0392b", "#27803a", "#8e44ad", "#b9770e"];
const body = document.body;
const add = (tag, text) => { const e = document.createElement(tag); if (text) e.textContent = text; body.append(e); return e; };
const table = document.getElementById("figures");
for (const key of Object.keys(data.runs[0].figures)) {
  const row = table.insertRow(); row.insertCell().textContent = key;
  for (const run of data.runs) row.insertCell().textContent = JSON.stringify(run.figures[key]);
}
function chart(title, lines) {
  add("h2", title);
  const canvas = add("canvas"), c = canvas.getContext("2d");
  canvas.width = 1920; canvas.height = 440;
  let right = 0, top = 1e-9;
  for (const { x, y } of lines) { for (const v of x) right = Math.max(right, v); for (const v of y) top = Math.max(top, v); }
  const X = v => 90 + v / right * 1800, Y = v => 400 - v / top * 360;
  c.fillStyle = "#f4ecd8"; c.fillRect(X(data.limit[0]), 40, X(data.limit[1]) - X(data.limit[0]), 360);
  c.fillStyle = "#555"; c.font = "22px system-ui";
  for (let i = 0; i <= 4; i++) { c.fillText((top * i / 4).toPrecision(3), 4, Y(top * i / 4) + 8); c.fillRect(90, Y(top * i / 4), 1800, 1); }
  for (let s = 0; s <= right; s += 5) c.fillText(s + " s", X(s) - 10, 430);
  lines.forEach(({ name, x, y, colour }, i) => {
    c.strokeStyle = c.fillStyle = colour || colours[i % colours.length]; c.lineWidth = 2.5; c.beginPath();
    x.forEach((v, k) => k ? c.lineTo(X(v), Y(y[k])) : c.moveTo(X(v), Y(y[k]))); c.stroke();
    c.fillText(name, 110 + i * 300, 28);
  });
}
chart("Mean error", data.runs.map(r => ({ name: r.name, x: r.time, y: r.error })));
for (const r of data.runs) {
  chart("Error by priority, " + r.name, r.by_priority.map((y, i) => ({ name: "priority " + i, x: r.time, y })));
  chart("Error by distance, " + r.name, r.by_distance.map((y, i) => ({ name: ["0 to 15", "15 to 30", "30 to 50", "more"][i], x: r.time, y })));
}
chart("Rate that congestion control allows, B/s", data.runs.filter(r => r.figures.adaptive).map(r => ({ name: r.name, x: r.time, y: r.rate })));
chart("Steps of the plan", data.runs.filter(r => r.figures.adaptive).map(r => ({ name: r.name, x: r.time, y: r.plan })));
chart("Queue delay, ms", data.runs.map(r => ({ name: r.name, x: r.queue.map(q => q[0]), y: r.queue.map(q => q[1]) })));
chart("Packets lost", data.runs.map(r => ({ name: r.name, x: r.time, y: r.lost })));
add("h2", "Replay: filled is the server, rings are the client");
const replay = add("canvas"); replay.id = "replay"; replay.width = 1920; replay.height = 960;
const slider = add("input"); slider.type = "range"; slider.style.width = "80%"; slider.max = data.runs[0].truth.length - 1;
const button = add("button", "play"); let timer = 0;
function draw() {
  const c = replay.getContext("2d"), t = +slider.value; c.clearRect(0, 0, 1920, 960);
  data.runs.forEach((r, i) => {
    c.save(); c.translate(480 + i * 960, 480); c.font = "26px system-ui"; c.fillStyle = "#333";
    c.fillText(r.name + ", " + (r.time[t * r.every] || 0).toFixed(1) + " s", -460, -445); c.scale(7.5, 7.5);
    (r.truth[t] || []).forEach(([x, y], u) => {
      const colour = colours[data.priorities[u]], [a, b] = r.shown[t][u];
      c.fillStyle = c.strokeStyle = colour; c.lineWidth = .25;
      c.beginPath(); c.arc(x, y, .8, 0, 7); c.fill();
      c.beginPath(); c.moveTo(x, y); c.lineTo(a, b); c.stroke();
      c.beginPath(); c.arc(a, b, 1.2, 0, 7); c.stroke();
    });
    c.restore();
  });
}
slider.oninput = draw;
button.onclick = () => {
  if (timer) { clearInterval(timer); timer = 0; button.textContent = "play"; return; }
  button.textContent = "pause";
  timer = setInterval(() => { slider.value = (+slider.value + 1) % (+slider.max + 1); draw(); }, 1000 / 30 * data.runs[0].every);
};
draw();
"##;
