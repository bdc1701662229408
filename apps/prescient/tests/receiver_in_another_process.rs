//! A receiver in another process, which gets nothing but schema and packets.

use std::{
    io::Write,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use prescient_codec::Prior;
use prescient_sim::{
    baseline::{METHODS, MethodOptions, build},
    harness::{digest, read_reply, write_packet},
    world::{World, open},
};

fn receiver(method: &str, header: &str) -> Child {
    receiver_with(method, header, &[])
}

fn receiver_with(method: &str, header: &str, further: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_prescient"))
        .args(["receive", "--method", method, "--header", header])
        .args(further)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary of this package")
}

#[test]
fn every_method_arrives_in_another_process() {
    for method in METHODS {
        replay(method, MethodOptions::default(), &[]);
    }
}

#[test]
fn a_prior_reaches_the_other_process_as_a_file() {
    let file = std::env::temp_dir().join(format!("prescient-prior-{}", std::process::id()));
    let path = file.to_str().expect("a plain path");
    let trained = Command::new(env!("CARGO_BIN_EXE_prescient"))
        .args(["train", "world:rts?seed=9&ticks=60&count=50", "-o", path])
        .output()
        .expect("the binary of this package");
    assert!(trained.status.success());
    let bytes = std::fs::read(&file).expect("it was just written");
    let prior = Prior::from_bytes(&bytes).expect("it was just written");
    let options = MethodOptions {
        prior: Some(Arc::new(prior)),
        ..MethodOptions::default()
    };
    let with = replay("prescient", options, &["--prior", path]);
    std::fs::remove_file(&file).expect("it is there");
    let without = replay("prescient", MethodOptions::default(), &[]);
    assert!(
        with < without,
        "{with} bytes with a prior, {without} without"
    );
}

/// Sends a world to another process and returns the number of bytes.
fn replay(method: &str, options: MethodOptions, further: &[&str]) -> usize {
    let mut source = open("world:rts?seed=5&ticks=60&count=50").expect("a built-in world");
    let schema = source.schema().expect("a valid header");
    let (mut sender, _) = build(method, &options, schema).expect("a listed method");
    let mut child = receiver_with(method, &source.header().to_line(), further);
    let mut input = child.stdin.take().expect("piped");
    let mut output = child.stdout.take().expect("piped");
    let mut world = World::default();
    let mut bytes = 0;
    while let Some(update) = source.next_tick().expect("a synthetic world") {
        let tick = update.tick;
        let changes = world.apply(update);
        let packet = sender.send(tick, &world, &changes, None);
        bytes += packet.len();
        write_packet(&mut input, &packet).expect("the child listens");
        let reply = read_reply(&mut output).expect("the child answers");
        assert_eq!(reply.applied, Some(tick), "{method}");
        let truth = digest(
            world
                .iter()
                .map(|(_, entity)| (entity.class, &entity.row[..])),
        );
        assert_eq!(reply.digest, truth, "{method}, tick {tick}");
        if let Some(acknowledgement) = reply.acknowledgement {
            sender.acknowledge(&acknowledgement);
        }
    }
    drop(input);
    assert!(child.wait().expect("it ends").success(), "{method}");
    bytes
}

#[test]
fn a_bent_packet_ends_the_process_with_an_error_and_not_a_panic() {
    let source = open("world:rts?ticks=1").expect("a built-in world");
    let mut child = receiver("raw", &source.header().to_line());
    let mut input = child.stdin.take().expect("piped");
    input
        .write_all(&[3, 0, 0, 0, 0xff, 0xff, 0xff])
        .expect("the child listens");
    drop(input);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}
