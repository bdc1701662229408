//! `metrics` and `tracing` report the same numbers as the statistics. Needs both features: `cargo
//! test -p prescient --all-features`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use prescient::{Client, Everything, PeerId, Schema, Server, ServerEvent, State};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

#[derive(State, Default)]
struct Ball {
    #[state(step = 0.01, position)]
    x: f32,
}

/// Records every counter and gauge by its name.
#[derive(Default)]
struct Ledger(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Ledger {
    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        let mut cells = self.0.lock().expect("no thread panicked");
        cells.entry(key.name().into()).or_default().clone()
    }

    fn counter(&self, name: &'static str) -> u64 {
        self.cell(&Key::from_static_name(name))
            .load(Ordering::Relaxed)
    }

    fn gauge(&self, name: &'static str) -> f64 {
        f64::from_bits(self.counter(name))
    }
}

impl Recorder for Ledger {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Held by each test: `tracing` caches per call site whether a subscriber is interested, and what
/// one thread emits while another installs a subscriber is not defined.
static ALONE: Mutex<()> = Mutex::new(());

/// Records the names of spans and the texts of events.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Subscriber for Diary {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "prescient"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut lines = self.0.lock().expect("no thread panicked");
        lines.push(span.metadata().name().into());
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0.insert_str(0, &format!("{value:?}"));
                } else {
                    self.0 += &format!(" {}={value:?}", field.name());
                }
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().expect("no thread panicked").push(line.0);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Two local clients, one of which leaves; the counters are the sums of both.
///
/// Fails if any of `Meters` counts twice (`unwrap_or_default` of `insert` left out of a
/// difference), loses the counts of a client that leaves (`Meters::forget` not called), or any span
/// or event is left out.
#[test]
fn numbers_are_those_of_the_statistics() {
    let _alone = ALONE.lock();
    let ledger = Ledger::default();
    let diary = Diary::default();
    metrics::with_local_recorder(&ledger, || {
        tracing::subscriber::with_default(diary.clone(), || play(&ledger));
    });
    let lines = diary.0.lock().expect("no thread panicked").clone();
    for span in ["step", "encode", "send", "handle"] {
        assert!(lines.iter().any(|line| line == span), "no span {span}");
    }
    let events: Vec<_> = lines.iter().filter(|line| line.contains("peer")).collect();
    assert_eq!(
        events,
        [
            "joined peer=1 client=0",
            "joined peer=2 client=0",
            "left peer=2 reason=finished",
        ]
    );
}

fn play(ledger: &Ledger) {
    let schema = Schema::of::<Ball>().expect("a sound schema");
    let mut server = Server::offline(schema, Everything).expect("a server");
    let (mut staying, leaving) = (server.local_client(), server.local_client());
    let mut leaving = Some(leaving);
    let mut step = server.step().expect("in order");
    let ball = step.spawn(&Ball::default()).expect("sound");
    step.finish();
    let mut gone = (0, 0);
    for tick in 0..30u32 {
        let mut step = server.step().expect("in order");
        let x = (tick * tick) as f32;
        step.set(ball, &Ball { x }).expect("sound");
        step.finish();
        server
            .send_entity_event(ball.entity_ref(), b"rolls")
            .expect("it is there");
        server.send();
        for client in [Some(&mut staying), leaving.as_mut()].into_iter().flatten() {
            while client.poll().is_some() {}
        }
        if tick == 20 {
            // Its last event, after its last send.
            server
                .send_event(PeerId(2), b"bye")
                .expect("it is connected");
            let state = server.statistics(PeerId(2)).expect("it is connected").state;
            gone = (state.bytes, state.events);
            leaving = None;
        }
        while let Some(event) = server.poll() {
            assert!(!matches!(event, ServerEvent::Event { .. }));
        }
    }
    // Acknowledgements since the last send are counted by the next.
    server.send();
    let state = server.statistics(PeerId(1)).expect("it is connected").state;
    assert!(state.bytes > 100 && state.events > 20);
    assert_eq!(
        ledger.counter("prescient_state_bytes"),
        state.bytes + gone.0
    );
    assert_eq!(ledger.counter("prescient_events"), state.events + gone.1);
    assert_eq!(ledger.counter("prescient_state_packets"), 30 + 21);
    assert_eq!(ledger.counter("prescient_resyncs"), 0);
    assert_eq!(ledger.counter("prescient_joined"), 2);
    assert_eq!(ledger.counter("prescient_left"), 1);
    assert_eq!(ledger.gauge("prescient_peers"), 1.0);
    assert_eq!(ledger.gauge("prescient_entities"), 1.0);
    assert_eq!(ledger.gauge("prescient_entities_visible"), 1.0);
}

/// Fails if any counter of the socket uses another number.
#[test]
fn the_socket_is_counted_as_it_counts_itself() {
    let _alone = ALONE.lock();
    let schema = || Schema::of::<Ball>().expect("a sound schema");
    let ledger = Ledger::default();
    metrics::with_local_recorder(&ledger, || {
        let mut server = Server::loopback("127.0.0.1:0", schema(), Everything).expect("a server");
        let address = server.address().expect("it has a socket").to_string();
        let joining = thread::spawn(move || Client::loopback(&address, schema()).map(drop));
        while !joining.is_finished() {
            server.wait(Duration::from_millis(2));
            while server.poll().is_some() {}
            server.step().expect("in order").finish();
            server.send();
        }
        joining.join().expect("no panic").expect("a server");
        let socket = server.traffic();
        assert!(socket.bytes_sent > 0 && socket.bytes_received > 1200);
        for (name, truth) in [
            ("prescient_socket_packets_sent", socket.packets_sent),
            ("prescient_socket_bytes_sent", socket.bytes_sent),
            ("prescient_socket_packets_received", socket.packets_received),
            ("prescient_socket_bytes_received", socket.bytes_received),
        ] {
            assert_eq!(ledger.counter(name), truth, "{name}");
        }
    });
}
