//! A path planned half a second ahead hides latency: two clients, which receive every edit 20 and 400
//! milliseconds late, show the server's values at the server's time, also after the plan changes.
//!
//! `cargo run -p prescient-timeline --example patrol`

use prescient_timeline::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ahead = Span::from_millis(500);
    let start = Time::ZERO + ahead;
    let mut server = Curve::new(CurveConfig::default());
    let mut clients = [Client::new(20), Client::new(400)];
    let mut edits = 0;
    let mut max_error: f64 = 0.0;
    for tick in 0..300 {
        let now = Time::from_millis(100 * tick);
        let path = match tick {
            0 => Some(path(start, 0)),
            // The fourth post takes four seconds longer than planned.
            90 => Some(path(start, 4000)),
            _ => None,
        };
        if let Some(mut future) = path {
            let from = now + ahead;
            future.retain(|keyframe| keyframe.time > from);
            for edit in plan(&server, from, &future)? {
                edits += 1;
                server.apply(&edit)?;
                for client in &mut clients {
                    client.in_flight.push((now + client.latency, edit));
                }
            }
        }
        for client in &mut clients {
            client.receive(now)?;
        }
        if now >= start {
            let expected = server.at(now).ok_or("the server has no path")?;
            for client in &clients {
                let shown = client.curve.at(now).ok_or("a client has no path")?;
                let error = |axis| f64::from(shown[axis] - expected[axis]).abs();
                max_error = max_error.max(error(0)).max(error(1));
            }
        }
        if tick % 50 == 0 {
            let shown = [&server, &clients[0].curve, &clients[1].curve].map(|curve| curve.at(now));
            let seconds = tick as f64 / 10.0;
            println!("{seconds:4.1} s: {}", shown.map(format_position).join("  "));
        }
    }
    println!("{edits} edits instead of 300 updates; maximum error {max_error}");
    assert!(max_error < 0.01);
    Ok(())
}

/// Four posts, three seconds apart, with a stop of some milliseconds at the fourth, and back to the first.
fn path(start: Time, stop: i64) -> Vec<Keyframe<[f32; 2]>> {
    let posts = [
        [0.0, 0.0],
        [30.0, 0.0],
        [30.0, 40.0],
        [0.0, 40.0],
        [0.0, 0.0],
    ];
    let stop = Span::from_millis(stop);
    let mut keyframes = Vec::new();
    for (index, post) in (0i64..).zip(posts) {
        let arrival = start + Span::from_millis(1 + 3000 * index);
        if index <= 3 {
            keyframes.push(Keyframe::new(arrival, post));
        }
        if index > 3 || (index == 3 && stop > Span::ZERO) {
            keyframes.push(Keyframe::new(arrival + stop, post));
        }
    }
    keyframes
}

struct Client {
    curve: Curve<[f32; 2]>,
    latency: Span,
    /// With the times of arrival.
    in_flight: Vec<(Time, Edit<[f32; 2]>)>,
}

impl Client {
    fn new(latency: i64) -> Self {
        Self {
            curve: Curve::new(CurveConfig::default()),
            latency: Span::from_millis(latency),
            in_flight: Vec::new(),
        }
    }

    fn receive(&mut self, now: Time) -> Result<(), EditError> {
        for (_, edit) in self.in_flight.extract_if(.., |(time, _)| *time <= now) {
            self.curve.apply(&edit)?;
        }
        Ok(())
    }
}

fn format_position(position: Option<[f32; 2]>) -> String {
    position.map_or("         -".into(), |[x, y]| format!("{x:5.1}{y:5.1}"))
}
