//! The page's data as server-sent events: one `hello` with the clients, then a frame per tick.

use std::io::{self, Write};
use std::time::Duration;

use prescient::Tick;
use serde_json::{Value, json};

use crate::demo::board::{Board, Notes, Ripples, View, ViewState};
use crate::demo::creature::{STEPS, raw_bytes};
use crate::demo::pond::{HZ, SIZE};

/// The events for one browser, which shows one client.
pub(super) struct Frames<'a> {
    board: &'a Board,
    client: usize,
    /// The last tick sent.
    tick: Option<Tick>,
    /// Number of ripples sent so far: the server's and the client's.
    ripples: [u64; 2],
}

impl<'a> Frames<'a> {
    /// Frames of a client by its index; of the first if there is no such client.
    pub(super) fn new(board: &'a Board, client: usize) -> Self {
        let notes = board.read();
        let client = if client < notes.views.len() {
            client
        } else {
            0
        };
        Self {
            board,
            client,
            tick: None,
            ripples: [&notes.ripples, &notes.views[client].ripples].map(Ripples::count),
        }
    }

    /// Sends frames until the demo is over or the connection fails. A slow browser gets fewer
    /// frames.
    pub(super) fn send_all(&mut self, stream: &mut impl Write) -> io::Result<()> {
        let hello = self.hello(&self.board.read());
        send(stream, "hello", &hello)?;
        loop {
            let notes = self.board.wait_beyond(self.tick);
            if notes.is_over {
                break;
            }
            let frame = self.frame(&notes);
            drop(notes);
            send(stream, "frame", &frame)?;
        }
        send(stream, "bye", &json!({}))
    }

    fn hello(&self, notes: &Notes) -> Value {
        let client = |view: &View| {
            let link = &view.link;
            json!({"name": link.name, "link": link.description()})
        };
        json!({
            "clients": notes.views.iter().map(client).collect::<Vec<_>>(),
            "client": self.client,
            "hz": HZ,
            "size": SIZE,
            "steps": STEPS,
            "raw_bytes": raw_bytes(),
        })
    }

    fn frame(&mut self, notes: &Notes) -> Value {
        let view = &notes.views[self.client];
        self.tick = notes.truth.tick();
        let ripples = [&notes.ripples, &view.ripples];
        let new: Vec<Vec<[i64; 2]>> = (ripples.iter().zip(self.ripples))
            .map(|(ripples, known)| ripples.since(known).collect())
            .collect();
        self.ripples = ripples.map(Ripples::count);
        let rows = view.shown.iter().map(|shown| &shown.row);
        let ages = view.shown.iter().map(|shown| age(view.tick, shown.tick));
        json!({
            "tick": self.tick.map(|tick| tick.0),
            "truth": notes.truth.rows(),
            "shown": view.tick.map(|tick| tick.0),
            "view": rows.collect::<Vec<_>>(),
            "ages": ages.collect::<Vec<_>>(),
            "ripples": {"truth": new[0], "view": new[1]},
            "clients": notes.views.iter().map(|view| figures(view, self.tick)).collect::<Vec<_>>(),
        })
    }
}

fn figures(view: &View, now: Option<Tick>) -> Value {
    let figures = &view.figures;
    let lag = view.tick.and_then(|shown| age(now, shown));
    let milliseconds = |span: Duration| span.as_micros() as f64 / 1e3;
    json!({
        "state": match view.state {
            ViewState::Joining => "joining",
            ViewState::Live => "live",
            ViewState::Silent => "silent",
        },
        "rate": figures.rate,
        "round_trip": figures.round_trip.map(milliseconds),
        "loss": f64::from(figures.loss) / 1e4,
        "lag": lag,
        "compared": figures.verdict.compared,
        "late": figures.verdict.late,
        "wrong": figures.verdict.wrong,
        "drops": figures.drops,
    })
}

/// How many ticks `older` is before `newer`.
fn age(newer: Option<Tick>, older: Tick) -> Option<u64> {
    newer.map(|newer| newer.0.saturating_sub(older.0))
}

fn send(stream: &mut impl Write, event: &str, data: &Value) -> io::Result<()> {
    stream.write_all(format!("event: {event}\ndata: {data}\n\n").as_bytes())
}
