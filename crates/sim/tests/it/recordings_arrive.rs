//! The first ticks of every recorded world arrive exactly over a lossy link.

use std::path::{Path, PathBuf};

use prescient_sim::{
    baseline::{MethodOptions, build},
    harness::{RunOptions, run},
    trace::Header,
    world::{Recording, Source, SourceError, TickUpdate},
};
use prescient_tests::recorded::recorded;

/// A recording's first ticks, whatever their numbers.
struct Start {
    recording: Recording,
    left: u32,
}

impl Source for Start {
    fn header(&self) -> &Header {
        self.recording.header()
    }

    fn next_tick(&mut self) -> Result<Option<TickUpdate>, SourceError> {
        match self.left.checked_sub(1) {
            None => Ok(None),
            Some(left) => {
                self.left = left;
                self.recording.next_tick()
            }
        }
    }
}

#[test]
fn recorded_worlds_arrive_exactly_over_a_lossy_link() {
    let Some(directory) = recorded("traces") else {
        return;
    };
    let traces = traces(&directory);
    assert!(!traces.is_empty(), "no traces in {}", directory.display());
    for trace in &traces {
        for method in ["prescient", "learned"] {
            let recording = Recording::open(trace).expect("a readable recording");
            let mut source = Start {
                recording,
                left: TICKS,
            };
            let schema = source.schema().expect("a valid header");
            let (mut sender, mut receiver) =
                build(method, &MethodOptions::default(), schema).expect("a listed method");
            let options = RunOptions {
                rtt_ticks: 3,
                loss: 50_000,
                ..RunOptions::default()
            };
            let measured = run(
                &mut source,
                sender.as_mut(),
                receiver.as_mut(),
                &options,
                &mut |_| {},
            )
            .unwrap_or_else(|error| panic!("{}, {method}: {error}", trace.display()));
            assert_eq!(measured.bytes.len(), TICKS as usize, "{}", trace.display());
            assert!(measured.lost > 0 && measured.unusable == 0, "{method}");
        }
    }
}

fn traces(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().expect("a readable directory");
    let mut traces: Vec<_> = entries
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.to_string_lossy().ends_with(".trace.zst"))
        .collect();
    traces.sort();
    traces
}

const TICKS: u32 = 200;
