//! A recorded link delivers at its recorded opportunities, and no more.

use std::{fs, time::Duration};

use prescient_sim::link::{
    Conditions, LinkConditioner, OPPORTUNITY_BYTES, RecordedLink, RecordedLinkError, Time,
};
use prescient_tests::recorded::recorded;

/// Departure times of datagrams of these sizes if all are sent before the first opportunity.
fn departures(recording: &str, sizes: &[usize]) -> Vec<u64> {
    let recording = RecordedLink::parse(recording).expect("a recording");
    let mut link = LinkConditioner::new(1, Conditions::default().with_recorded(recording));
    for size in sizes {
        link.send(Time::ZERO, &vec![0; *size]);
    }
    let mut times = Vec::new();
    while let Some(now) = link.next_delivery() {
        while link.poll(now).is_some() {
            times.push(now.as_micros() / 1000);
        }
    }
    times
}

#[test]
fn an_opportunity_carries_one_datagram_several_or_a_part() {
    let recording = "1\n2\n2\n7\n";
    assert_eq!(departures(recording, &[1500; 6]), [1, 2, 2, 7, 8, 9]);
    assert_eq!(departures(recording, &[500; 7]), [1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(departures(recording, &[1000; 5]), [1, 2, 2, 2, 7]);
    assert_eq!(departures(recording, &[4000, 500, 1]), [2, 2, 7]);
}

#[test]
fn an_opportunity_that_nobody_waits_for_is_gone() {
    let recording = RecordedLink::parse("0\n5\n5\n10\n").expect("a recording");
    let mut link = LinkConditioner::new(1, Conditions::default().with_recorded(recording));
    link.send(Time::from_millis(5), &[0; 1500]);
    assert_eq!(link.next_delivery(), Some(Time::from_millis(10)));
    assert!(link.poll(Time::from_millis(10)).is_some());
    link.send(Time::from_millis(33), &[0; 1500]);
    assert_eq!(link.next_delivery(), Some(Time::from_millis(35)));
}

#[test]
fn a_file_of_something_else_is_refused_with_its_line() {
    let refused = RecordedLink::parse("12\n13 \n14ms\n");
    assert!(matches!(
        refused,
        Err(RecordedLinkError::Number { line: 3 })
    ));
}

#[test]
fn recorded_links_deliver_at_most_their_opportunities_and_all_of_them_on_demand() {
    let Some(directory) = recorded("links") else {
        return;
    };
    let mut files: Vec<_> = fs::read_dir(&directory)
        .expect("a readable directory")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "down" || end == "up")
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no links in {}", directory.display());
    for file in files {
        let recording = RecordedLink::open(&file).expect("a recorded link");
        saturate(&file.display().to_string(), recording);
    }
}

/// Keeps the queue full for a minute, and for a second after the recording repeats.
fn saturate(name: &str, recording: RecordedLink) {
    let conditions = Conditions::default()
        .with_recorded(recording.clone())
        .with_overhead(28)
        .with_queue_limit(20 * OPPORTUNITY_BYTES);
    let wrap = recording.length().as_micros();
    for (start, length) in [(0, 60_000_000), (wrap - 1_000_000, 2_000_000_u64)] {
        let mut link = LinkConditioner::new(1, conditions.clone());
        let begin = Time::from_micros(start);
        let mut used = 0;
        // One datagram fills one opportunity. With 40 per millisecond the queue is always full.
        for step in 0..length / 1000 {
            let now = Time::from_micros(start + step * 1000);
            while link.poll(now).is_some() {
                used += 1;
            }
            let until = recording.opportunities_until(now);
            let max = until - recording.opportunities_until(begin);
            assert!(used <= max, "{name}: {used} of {max} at {now}");
            for _ in 0..40 {
                link.send(now, &[0; OPPORTUNITY_BYTES - 28]);
            }
        }
        let last = Time::from_micros(start + length - 1000);
        let max = recording.opportunities_until(last) - recording.opportunities_until(begin);
        let delay = &link.statistics().queue_delay;
        println!(
            "{name}: {used} of {max} opportunities used from {begin}, {} kbit/s on average, \
             queue delay half {:?}, 95 % {:?}, most {:?}",
            recording.average_rate() / 1000,
            delay.p50().unwrap_or_default(),
            delay.p95().unwrap_or_default(),
            delay.max().unwrap_or_default()
        );
        // More than 21 opportunities in a millisecond empty the queue.
        assert!(used * 100 >= max * 95, "{name}: {used} of {max}");
    }
}

#[test]
fn a_game_on_a_recorded_link_waits_but_loses_nothing() {
    let Some(file) = recorded("links/Verizon-LTE-short.down") else {
        return;
    };
    let recording = RecordedLink::open(file).expect("a recorded link");
    let conditions = Conditions::default()
        .with_recorded(recording)
        .with_latency(Duration::from_millis(20))
        .with_overhead(28);
    let mut link = LinkConditioner::new(1, conditions);
    let mut received = 0;
    for number in 0..6_000_u64 {
        let now = Time::from_micros(number * 16_667);
        link.send(now, &number.to_le_bytes().repeat(40));
        while let Some(bytes) = link.poll(now) {
            assert_eq!(bytes[..8], u64::to_le_bytes(received), "order is kept");
            received += 1;
        }
    }
    while link.poll(Time::from_secs(200)).is_some() {
        received += 1;
    }
    let delay = &link.statistics().queue_delay;
    println!(
        "queue delay: 95 % {:?}, most {:?}",
        delay.p95(),
        delay.max()
    );
    assert_eq!(received, 6_000);
}
