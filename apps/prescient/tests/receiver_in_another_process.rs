//! The receiver gets an address space of its own: nothing but schema and bytes can reach it.

use std::{
    io::Write,
    process::{Child, Command, Stdio},
};

use prescient_sim::{
    baseline::{METHODS, MethodOptions, build},
    harness::{digest, read_reply, write_packet},
    world::{World, open},
};

fn receiver(method: &str, header: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_prescient"))
        .args(["receive", "--method", method, "--header", header])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary of this package")
}

#[test]
fn every_method_arrives_in_another_process() {
    for method in METHODS {
        let mut source = open("world:rts?seed=5&ticks=60&count=50").expect("a built-in world");
        let schema = source.schema().expect("a valid header");
        let (mut sender, _) =
            build(method, &MethodOptions::default(), schema).expect("a listed method");
        let mut child = receiver(method, &source.header().to_line());
        let mut input = child.stdin.take().expect("piped");
        let mut output = child.stdout.take().expect("piped");
        let mut world = World::default();
        while let Some(update) = source.next_tick().expect("a synthetic world") {
            let tick = update.tick;
            let changes = world.apply(update);
            let packet = sender.send(tick, &world, &changes, None);
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
    }
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
