//! Every example runs alone, ends by itself, and prints the promised lines.

use std::env;
use std::process::Command;

/// Runs an example, which `cargo test` has built, and returns its lines.
fn run(name: &str) -> Vec<String> {
    let mut path = env::current_exe().expect("this test is a program");
    path.pop();
    path.pop();
    path.push("examples");
    path.push(format!("{name}{}", env::consts::EXE_SUFFIX));
    let done = Command::new(&path).output();
    let done = done.expect("the examples are built: `cargo test` or `cargo build --examples`");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{name} failed: {errors}");
    let text = String::from_utf8(done.stdout).expect("text");
    text.lines().map(String::from).collect()
}

/// Fails if `Server::send` sends no state: then there is no box.
#[test]
fn simple_box_shows_a_box_that_moves() {
    let lines = run("simple_box");
    let mut positions: Vec<_> = lines.iter().filter(|line| line.ends_with('#')).collect();
    positions.sort();
    positions.dedup();
    assert!(positions.len() > 10, "it hardly moved: {lines:?}");
}

/// Fails if `begin_frame` does not advance, or if the ball is shown at its samples only.
#[test]
fn show_draws_between_samples() {
    let lines = run("show");
    let numbers = |line: &String| -> Option<(f64, f64)> {
        let (tick, height) = line.strip_prefix("tick ")?.split_once(": height ")?;
        Some((tick.parse().ok()?, height.parse().ok()?))
    };
    let frames: Vec<(f64, f64)> = lines.iter().filter_map(numbers).collect();
    assert!(frames.len() > 40, "{lines:?}");
    assert!(frames.is_sorted_by(|one, next| one.0 <= next.0));
    assert!(
        frames
            .iter()
            .all(|(_, height)| (-0.5..=5.5).contains(height))
    );
}

/// Fails if the simulated ball is not ahead of the shown one, or leaves the floor.
#[test]
fn simulate_shows_the_present() {
    let lines = run("simulate");
    assert!(lines.len() >= 15, "{lines:?}");
    assert!(lines.iter().all(|line| line.starts_with("tick ")));
}

/// Fails if a cap degrades nothing, or if the client is no longer sent state.
#[test]
fn adaptation_degrades_a_capped_client() {
    let lines = run("adaptation");
    let is_degraded = |line: &String| line.contains(": step ") && !line.contains(": step 0 ");
    assert!(lines.iter().any(is_degraded), "{lines:?}");
    let last = lines.last().and_then(|line| line.rsplit_once(' '));
    let shown = last.and_then(|(_, tick)| tick.parse::<u32>().ok());
    assert!(shown >= Some(100), "{lines:?}");
}

/// Fails if a policy of the program's own is not used.
#[test]
fn congestion_uses_the_programs_own_policy() {
    let lines = run("congestion");
    let rate = lines
        .last()
        .and_then(|line| line.strip_prefix("policy careful: "));
    let rate = rate.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(
        (1..4_000_000).contains(&rate.unwrap_or_default()),
        "{lines:?}"
    );
}

/// Fails if an input is not applied in its own frame, or if the push is not corrected.
#[test]
fn predict_moves_at_once() {
    let lines = run("predict");
    assert_eq!(lines[0], "input 0: shown at 0.50, at the server 0.00");
    let last = lines.last().map(String::as_str);
    assert_eq!(last, Some("12 states compared, 1 corrected"));
}

/// Fails if the server judges by the present.
#[test]
fn rewind_hits_what_was_aimed_at() {
    let lines = run("rewind");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.ends_with(": hit")),
        "{lines:?}"
    );
}

/// Fails if a tick is given more than one input.
#[test]
fn input_buffer_hands_out_one_per_tick() {
    let lines = run("input_buffer");
    let ticks = lines.iter().filter(|line| line.starts_with("tick "));
    let counts: Vec<_> = ticks
        .map(|line| line.contains(": 1 inputs") || line.contains(": 0 "))
        .collect();
    assert!(
        counts.len() == 6 && counts.iter().all(|&it| it),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("is to tick every")),
        "{lines:?}"
    );
}

/// From the game without a network to that with one: at most 20 lines added or changed. Fails if
/// the examples drift apart.
#[test]
fn a_network_takes_twenty_lines() {
    let read = |name: &str| {
        let path = format!("{}/examples/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("an example");
        let is_code = |line: &&str| !line.starts_with("//!") && !line.starts_with("#![");
        let lines = text.lines().filter(is_code);
        lines.map(String::from).collect::<Vec<_>>()
    };
    let (alone, networked) = (read("simple_box_alone"), read("simple_box"));
    let common = longest_common_subsequence(&alone, &networked);
    let added = networked.iter().filter(|line| !line.is_empty()).count();
    let kept = common.iter().filter(|line| !line.is_empty()).count();
    let removed = alone.iter().filter(|line| !line.is_empty()).count() - kept;
    assert!(added - kept <= 20, "{} lines added", added - kept);
    assert!(removed <= 2, "{removed} lines removed");
}

fn longest_common_subsequence(one: &[String], other: &[String]) -> Vec<String> {
    let mut best = vec![vec![0; other.len() + 1]; one.len() + 1];
    for at in (0..one.len()).rev() {
        for with in (0..other.len()).rev() {
            best[at][with] = match one[at] == other[with] {
                true => best[at + 1][with + 1] + 1,
                false => best[at + 1][with].max(best[at][with + 1]),
            };
        }
    }
    let (mut at, mut with, mut common) = (0, 0, Vec::new());
    while at < one.len() && with < other.len() {
        if one[at] == other[with] {
            common.push(one[at].clone());
            (at, with) = (at + 1, with + 1);
        } else if best[at + 1][with] >= best[at][with + 1] {
            at += 1;
        } else {
            with += 1;
        }
    }
    common
}

/// Fails if `Server::handle_input` reports no inputs (then no walker moves), or does not set the
/// keys in the world.
#[test]
fn events_and_input_reach_other_clients() {
    let expected = [
        "a walker appeared",
        "its player holds the right key down",
        "its player shouts hey!",
    ];
    assert_eq!(run("events_and_input"), expected);
}

/// Fails if `Visibility::default_for` shows owners no more than others, or if `Distance` has no
/// hysteresis (`leave: enter` in `Distance::new`).
#[test]
fn visibility_shows_friends_neighbours_and_own_arrows() {
    let lines = run("visibility");
    let expected = [
        "eve is at -49: ann sees ann and 7 arrows, bob",
        "eve is at -49: bob sees ann, bob and 7 arrows",
        "eve is at -49: eve sees eve and 7 arrows",
        "eve is at -19: ann sees ann and 7 arrows, bob, eve",
        "eve is at -17: eve sees ann, eve and 7 arrows",
        "eve is at  27: eve sees eve and 7 arrows",
        "eve is at  29: ann sees ann and 7 arrows, bob",
        "eve is at  80: bob sees ann, bob and 7 arrows, eve",
        "eve is at  83: eve sees bob, eve and 7 arrows",
        "eve is at 127: eve sees eve and 7 arrows",
        "eve is at 128: bob sees ann, bob and 7 arrows",
    ];
    assert_eq!(lines, expected);
}

/// Fails if `Server::set_quality` sets nothing, or if `Grade::level` ignores the bias.
#[test]
fn quality_degrades_what_matters_least() {
    let expected = [
        "full: 12 of 12 birds are of this tick, off by 0.00 at most, the ship by 0.00",
        "coarser: 12 of 12 birds are of this tick, off by 0.32 at most, the ship by 0.00",
        "rarer: 3 of 12 birds are of this tick, off by 0.00 at most, the ship by 0.00",
        "full: 12 of 12 birds are of this tick, off by 0.00 at most, the ship by 0.00",
    ];
    assert_eq!(run("quality"), expected);
}

/// Fails if `Publisher::wrap` makes every packet a snapshot (then nobody waits), or none but the
/// first.
#[test]
fn spectators_watch_one_stream() {
    let expected = [
        "early sees ann at 1.5",
        "lossy waits: it lacks packet 1",
        "early sees ann at 6.5",
        "late waits: it lacks packet 11",
        "early sees ann at 11.5",
        "late sees ann at 11.5",
        "lossy sees ann at 11.5",
        "early sees ann at 16.5",
        "late sees ann at 16.5",
        "lossy waits: it lacks packet 31",
        "the recording shows ann at 12.5",
    ];
    assert_eq!(run("publish"), expected);
}

/// Fails if `Client::resolve` of the replication resolves to another id (`Some(id + 1)`).
#[test]
fn references_resolve_when_their_entity_is_shown() {
    let expected = [
        "a missile at 0.25 is after something unknown",
        "the Beagle becomes visible at 49",
        "a missile at 12.75 is after the Beagle",
        "the ship is gone",
        "a missile at 25 is after something unknown",
    ];
    assert_eq!(run("references"), expected);
}

/// Fails if `ServerOptions::with_state_per_tick` is ignored (then nothing is ever apart), or if groups are
/// (`Encoder::group` always `None`).
#[test]
fn groups_are_seen_together() {
    let lines = run("groups");
    let [grouped, alone] = &lines[..] else {
        panic!("not two lines: {lines:?}");
    };
    assert!(
        grouped.ends_with(" 0 saw its turret elsewhere"),
        "{grouped}"
    );
    assert!(!alone.ends_with(" 0 saw its turret elsewhere"), "{alone}");
}

/// Fails if `Visibility::without_table` hides nothing (then the stranger sees the poison), or if
/// `WorldStep::set` leaves out absent tables.
#[test]
fn optional_tables_come_and_go() {
    let expected = [
        "player: the knight has a shield Some(50)",
        "stranger: the knight has a shield Some(50)",
        "player: the knight has poison Some(3)",
        "player: the knight lost a shield None",
        "stranger: the knight lost a shield None",
        "player: the knight lost poison None",
    ];
    assert_eq!(run("optional_tables"), expected);
}

/// Fails if a local client or a connection gets no events (`Server::send` leaves them out): then it
/// does not end.
#[test]
fn host_mode_is_the_same_for_host_and_guest() {
    let mut lines = run("host_mode");
    lines.sort();
    let expected = [
        "guest sees guest",
        "guest sees host",
        "guest sees that host wins at 10",
        "host sees guest",
        "host sees host",
        "host sees that host wins at 10",
    ];
    assert_eq!(lines, expected);
}

/// Fails if a client over TCP is not told what the others are (`TcpServer::flush` without
/// `transmit`), or if its id and data are lost on the way.
#[test]
fn tcp_carries_state_and_events() {
    let lines = run("tcp");
    assert!(
        lines.contains(&"client 7 of blue team joined".into()),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"the server says: welcome".into()),
        "{lines:?}"
    );
    let last = lines.last().expect("it says something");
    assert!(
        last.starts_with("after 100 updates the planet is at "),
        "{last}"
    );
}

/// Both ends draw between the same two values. Fails if `Archive::samples` starts one tick late
/// (the first line is missing), or if a client has no samples.
#[test]
fn samples_are_the_same_at_both_ends() {
    let expected = [
        "tick 1.5: drawn at 10, hit if aimed at 10",
        "tick 2.5: drawn at 15.5, hit if aimed at 15.5",
        "tick 3.5: drawn at 20, hit if aimed at 20",
        "tick 4.5: drawn at 23.5, hit if aimed at 23.5",
        "tick 5.5: drawn at 26, hit if aimed at 26",
        "tick 6.5: drawn at 27.5, hit if aimed at 27.5",
        "tick 7.5: drawn at 28, hit if aimed at 28",
        "tick 8.5: drawn at 27.5, hit if aimed at 27.5",
        "tick 9.5: drawn at 26, hit if aimed at 26",
    ];
    assert_eq!(run("samples"), expected);
}

/// Fails if `follow` sends a whole path again (then the delay takes more edits), or if late clients get no
/// history.
#[test]
fn paths_are_known_ahead() {
    let expected = [
        "the plan takes 4 edits",
        "early: 8,10 at 6 s, 30,40 at 21 s, 0,80 at 48 s",
        "the delay takes 2 edits",
        "early: 8,10 at 6 s, 25,33 at 21 s, 0,80 at 48 s",
        "late: 8,10 at 6 s, 25,33 at 21 s, 0,80 at 48 s",
    ];
    assert_eq!(run("paths"), expected);
}

/// Fails if `Server::send` records nothing, or `Player::play` ignores the sign of its speed.
#[test]
fn record_plays_backwards() {
    let lines = run("record");
    assert!(lines[0].starts_with("300 ticks in "), "{lines:?}");
    let bytes: u32 = lines[0].split(' ').nth(3).unwrap().parse().unwrap();
    assert!(bytes < 3000, "{bytes} bytes");
    assert!(lines[1].ends_with("s: lift north at 29.9 m"), "{lines:?}");
    assert_eq!(lines.last().unwrap(), " 0.0 s: lift north at 0.0 m");
    assert!(lines.len() >= 5, "{lines:?}");
}

/// Fails if a version reaches nobody, or if dead reckoning publishes every tick.
#[test]
fn named_peers_show_each_other_and_skip_what_is_extrapolated() {
    let lines = run("named_peers");
    assert_eq!(lines.len(), 4, "{lines:?}");
    for name in ["anna", "ben"] {
        let shows = |line: &&String| line.starts_with(&format!("{name} shows"));
        let shown = lines.iter().find(shows).expect("a line");
        // They turn at tick 45; later updates only answer Interests that would expire.
        let tick = shown.split_once("of tick ").expect("a tick").1;
        let (tick, position) = tick.split_once(" at ").expect("a position");
        assert!(tick.parse::<u32>().expect("a number") >= 45, "{shown}");
        assert!(position.starts_with("4."), "{shown}");
        let published = lines
            .iter()
            .find(|line| line.contains("skipped") && line.starts_with(name));
        let numbers: Vec<u32> = published
            .expect("a line")
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        assert!(numbers[0] <= 12 && numbers[1] >= 60, "{numbers:?}");
    }
}

/// Fails if the last state of a ship that sank is gone, or if events overtake each other.
#[test]
fn typed_events_arrive_with_their_ships() {
    let expected = [
        "Ann hits Bob: 12.5",
        "a splash at 3.5, -1",
        "Bob says ouch",
        "the player steers -0.5, fires: true",
        "it costs 70",
        "a splash at -0.5, 0",
    ];
    let mut lines = run("typed_events");
    lines.sort();
    let mut expected: Vec<String> = expected.map(String::from).into();
    expected.sort();
    assert_eq!(lines, expected);
}
