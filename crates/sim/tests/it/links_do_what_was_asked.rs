//! Measures every condition of a link from outside: the requested effect and no other, and the same
//! again for the same seed. Figures are printed; `--nocapture` shows them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use prescient_sim::{
    link::{Conditions, LinkConditioner, PRESETS, RecordedLink, Time},
    world::Random,
};

const PACKETS: u64 = 200_000;

/// A received datagram: its time, its number, and whether it is intact.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Arrival {
    at: Time,
    number: u64,
    intact: bool,
}

/// Sends numbered datagrams at a constant interval and collects arrivals at their times.
fn drive(link: &mut LinkConditioner, packets: u64, every: u64, size: usize) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    for number in 0..packets {
        let now = Time::from_micros(number * every);
        drain(link, now, &mut arrivals);
        link.send(now, &packet(number, size));
    }
    drain(link, Time::from_secs(1_000_000), &mut arrivals);
    arrivals
}

/// Polls at every possible arrival time until `until`.
fn drain(link: &mut LinkConditioner, until: Time, arrivals: &mut Vec<Arrival>) {
    while let Some(now) = link.next_delivery().filter(|due| *due <= until) {
        while let Some(bytes) = link.poll(now) {
            let number = bytes.first_chunk().copied().map(u64::from_le_bytes);
            let number = number.expect("a link does not shorten");
            arrivals.push(Arrival {
                at: now,
                number,
                intact: bytes == packet(number, bytes.len()),
            });
        }
        let next = link.next_delivery();
        assert!(next.is_none_or(|next| next > now), "no progress at {now}");
    }
}

/// The number, then bytes derived from it.
fn packet(number: u64, size: usize) -> Vec<u8> {
    let mut random = Random::new(number);
    let padding = (8..size).map(|_| random.bits() as u8);
    number.to_le_bytes().into_iter().chain(padding).collect()
}

/// Asserts that a share of `whole` is within `tolerance`, both in parts per million.
fn assert_share(what: &str, part: u64, whole: u64, expected: u32, tolerance: u32) {
    let share = part * 1_000_000 / whole;
    println!("{what}: {share} of a million, asked for {expected}");
    assert!(
        share.abs_diff(u64::from(expected)) <= u64::from(tolerance),
        "{what}: {share} instead of {expected} ± {tolerance}"
    );
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// All conditions at once.
fn dreadful() -> Conditions {
    Conditions::default()
        .with_latency(millis(30))
        .with_jitter(millis(20))
        .with_loss(50_000)
        .with_bursts(30_000, 4)
        .with_reordering(100_000, millis(200))
        .with_duplication(100_000, millis(3_000))
        .with_corruption(100_000)
        .with_bandwidth(800_000)
        .with_queue_limit(20_000)
        .with_overhead(28)
        .with_mtu(1500)
        .with_repeated_blackout(Time::from_secs(2), millis(500), millis(4_000))
}

#[test]
fn a_perfect_link_delivers_everything_at_once() {
    let mut link = LinkConditioner::new(1, Conditions::default());
    let arrivals = drive(&mut link, 1000, 10, 100);
    assert_eq!(arrivals.len(), 1000);
    for (number, arrival) in (0..).zip(&arrivals) {
        assert_eq!((arrival.number, arrival.intact), (number, true));
        assert_eq!(arrival.at, Time::from_micros(number * 10));
    }
}

#[test]
fn uniform_loss_converges_to_its_share() {
    for (seed, loss) in [0, 10_000, 50_000, 200_000, 500_000, 900_000, 1_000_000]
        .into_iter()
        .enumerate()
    {
        let mut link = LinkConditioner::new(seed as u64, Conditions::default().with_loss(loss));
        let arrived = drive(&mut link, PACKETS, 100, 8).len() as u64;
        // At most five standard deviations.
        assert_share("loss", PACKETS - arrived, PACKETS, loss, 5_600);
        if [0, 1_000_000].contains(&loss) {
            assert_share("loss", PACKETS - arrived, PACKETS, loss, 0);
        }
        assert_eq!(link.statistics().lost.uniform, PACKETS - arrived);
    }
}

#[test]
fn bursts_have_the_share_and_the_length_that_were_asked_for() {
    for (loss, length) in [(20_000, 3), (50_000, 5), (100_000, 10), (500_000, 20)] {
        let conditions = Conditions::default().with_bursts(loss, length);
        let mut link = LinkConditioner::new(u64::from(loss), conditions);
        let packets = 1_000_000;
        let arrivals = drive(&mut link, packets, 100, 8);
        let lost = packets - arrivals.len() as u64;
        assert_share("burst loss", lost, packets, loss, loss / 10);
        let gaps = arrivals
            .windows(2)
            .filter(|pair| pair[1].number - pair[0].number > 1)
            .count() as u64;
        let average = lost * 1000 / gaps;
        println!("bursts of {average} thousandths, asked for {length}");
        let expected = u64::from(length) * 1000;
        assert!(average.abs_diff(expected) <= expected / 10, "{average}");
        assert_eq!(link.statistics().lost.bursts, lost);
    }
}

#[test]
fn bursts_that_cannot_be_that_short_keep_the_loss() {
    let conditions = Conditions::default().with_bursts(900_000, 1);
    let mut link = LinkConditioner::new(5, conditions);
    let arrived = drive(&mut link, PACKETS, 100, 8).len() as u64;
    assert_share("burst loss", PACKETS - arrived, PACKETS, 900_000, 5_000);
    let all = Conditions::default().with_bursts(1_000_000, 3);
    assert_eq!(drive(&mut LinkConditioner::new(5, all), 1000, 100, 8), []);
}

#[test]
fn copies_converge_to_their_share_and_come_as_late_as_asked() {
    let late = Duration::from_secs(60);
    let conditions = Conditions::default().with_duplication(500_000, late);
    let mut link = LinkConditioner::new(9, conditions);
    let arrivals = drive(&mut link, PACKETS, 100, 16);
    let copies = arrivals.len() as u64 - PACKETS;
    assert_share("duplicates", copies, PACKETS, 500_000, 5_600);
    assert_eq!(link.statistics().duplicated, copies);
    let mut first = BTreeMap::new();
    let mut latest = Duration::ZERO;
    for arrival in &arrivals {
        let lateness = arrival
            .at
            .since(*first.entry(arrival.number).or_insert(arrival.at));
        latest = latest.max(lateness);
    }
    println!("latest copy after {latest:?}, asked for up to {late:?}");
    assert!(latest <= late && latest > Duration::from_secs(59));
    assert_eq!(first.len() as u64, PACKETS);
}

#[test]
fn corruption_converges_to_its_share_and_always_changes_something() {
    let conditions = Conditions::default().with_corruption(300_000);
    let mut link = LinkConditioner::new(3, conditions);
    let mut harmed = 0;
    for number in 0..PACKETS {
        let now = Time::from_micros(number);
        let sent = packet(number, 64);
        link.send(now, &sent);
        let received = link.poll(now).expect("nothing is lost");
        assert_eq!(received.len(), sent.len());
        let flipped: u32 = sent
            .iter()
            .zip(&received)
            .map(|(sent, received)| (sent ^ received).count_ones())
            .sum();
        assert!(flipped <= 8);
        harmed += u64::from(flipped > 0);
    }
    assert_share("corruption", harmed, PACKETS, 300_000, 5_200);
    assert_eq!(link.statistics().corrupted, harmed);
}

#[test]
fn corruption_finds_nothing_to_harm_in_an_empty_datagram() {
    let conditions = Conditions::default().with_corruption(1_000_000);
    let mut link = LinkConditioner::new(3, conditions);
    link.send(Time::ZERO, &[]);
    assert_eq!(link.poll(Time::ZERO), Some(Vec::new()));
    assert_eq!(link.statistics().corrupted, 0);
}

#[test]
fn order_is_kept_unless_reordering_was_asked_for() {
    let calm = Conditions::default()
        .with_latency(millis(50))
        .with_loss(50_000)
        .with_bandwidth(10_000_000);
    let backwards = |conditions: Conditions| {
        let arrivals = drive(&mut LinkConditioner::new(2, conditions), 50_000, 1000, 100);
        let pairs = arrivals.windows(2);
        pairs.filter(|pair| pair[1].number < pair[0].number).count()
    };
    assert_eq!(backwards(calm.clone().with_jitter(millis(200))), 0);
    let jitter = backwards(calm.clone().with_reordering_jitter(millis(200)));
    let held_back = backwards(calm.with_reordering(100_000, millis(200)));
    println!("backwards: {jitter} by jitter, {held_back} by holding back a tenth, of 50000");
    assert!(jitter > 10_000 && held_back > 2_000);
}

#[test]
fn reordering_has_its_share_and_its_bound() {
    let conditions = Conditions::default()
        .with_latency(millis(20))
        .with_reordering(500_000, millis(200));
    let mut link = LinkConditioner::new(4, conditions);
    let arrivals = drive(&mut link, PACKETS, 1000, 8);
    let late = |arrival: &Arrival| arrival.at.since(Time::from_millis(arrival.number + 20));
    let held_back = arrivals.iter().filter(|one| late(one) > Duration::ZERO);
    assert_share(
        "held back",
        held_back.count() as u64,
        PACKETS,
        500_000,
        5_600,
    );
    let max = arrivals.iter().map(late).max().expect("there are some");
    assert!(max <= millis(200) && max > millis(199), "{max:?}");
}

#[test]
fn jitter_lies_between_nothing_and_its_most() {
    let conditions = Conditions::default()
        .with_latency(millis(20))
        .with_reordering_jitter(millis(10));
    let arrivals = drive(&mut LinkConditioner::new(4, conditions), 50_000, 1000, 8);
    let delays = arrivals
        .iter()
        .map(|one| one.at.since(Time::from_millis(one.number)));
    let (min, max) = (delays.clone().min(), delays.max());
    println!("delays from {min:?} to {max:?}");
    assert!(min.is_some_and(|min| min >= millis(20) && min < millis(21)));
    assert!(max.is_some_and(|max| max <= millis(30) && max > millis(29)));
}

#[test]
fn the_same_seed_and_calls_give_the_same_result() {
    let run = |seed| {
        let mut link = LinkConditioner::new(seed, dreadful());
        let arrivals = drive(&mut link, 20_000, 1500, 150);
        (arrivals, link.statistics().clone())
    };
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
        assert_ne!(run(seed).0, run(seed + 1).0, "seed {seed}");
    }
}

#[test]
fn when_somebody_polls_changes_nothing() {
    let seldom = |seed| {
        let mut link = LinkConditioner::new(seed, dreadful());
        for number in 0..20_000 {
            link.send(Time::from_micros(number * 1500), &packet(number, 150));
        }
        let mut received = Vec::new();
        while let Some(bytes) = link.poll(Time::from_secs(1000)) {
            received.push(bytes);
        }
        received
    };
    let often = |seed| {
        let mut link = LinkConditioner::new(seed, dreadful());
        let mut received = Vec::new();
        for number in 0..20_000 {
            link.send(Time::from_micros(number * 1500), &packet(number, 150));
            for part in 0..3 {
                while let Some(bytes) = link.poll(Time::from_micros(number * 1500 + part * 500)) {
                    received.push(bytes);
                }
            }
        }
        while let Some(bytes) = link.poll(Time::from_secs(1000)) {
            received.push(bytes);
        }
        received
    };
    for seed in 0..10 {
        assert!(seldom(seed) == often(seed), "seed {seed}");
    }
}

#[test]
fn nothing_arrives_before_the_next_delivery_that_was_announced() {
    let conditions = Conditions::default()
        .with_latency(millis(5))
        .with_reordering_jitter(millis(20))
        .with_duplication(200_000, millis(10))
        .with_bandwidth(4_000_000);
    for seed in 0..10 {
        let mut link = LinkConditioner::new(seed, conditions.clone());
        (0..40).for_each(|number| link.send(Time::ZERO, &packet(number, 500)));
        let mut always = link.clone();
        let mut announced = Vec::new();
        drain(&mut link, Time::from_secs(1), &mut announced);
        let mut found = Vec::new();
        for now in (0..100_000).map(Time::from_micros) {
            while let Some(bytes) = always.poll(now) {
                found.push((now, bytes));
            }
        }
        assert_eq!(announced.len(), found.len(), "seed {seed}");
        for (announced, (at, bytes)) in announced.iter().zip(&found) {
            assert_eq!(announced.at, *at, "seed {seed}");
            assert_eq!(*bytes, packet(announced.number, 500), "seed {seed}");
        }
    }
}

#[test]
fn another_condition_does_not_change_who_is_lost() {
    let arrived = |conditions: Conditions| -> BTreeSet<u64> {
        let arrivals = drive(&mut LinkConditioner::new(8, conditions), 10_000, 1000, 50);
        arrivals.into_iter().map(|arrival| arrival.number).collect()
    };
    let lossy = Conditions::default().with_loss(100_000);
    let others = lossy
        .clone()
        .with_jitter(millis(50))
        .with_bandwidth(1_000_000)
        .with_reordering(200_000, millis(90))
        .with_duplication(200_000, millis(70));
    assert_eq!(arrived(lossy), arrived(others));
}

#[test]
fn nothing_goes_missing_without_a_cause() {
    for seed in 0..50 {
        let mut link = LinkConditioner::new(seed, dreadful());
        for number in 0..5_000 {
            let now = Time::from_micros(number * 1300);
            let size = if number % 50 == 0 { 1480 } else { 120 };
            link.send(now, &packet(number, size));
            if number % 7 == 0 {
                link.poll(now);
            }
            let statistics = link.statistics();
            let gone = statistics.delivered + statistics.lost.total() + link.in_transit() as u64;
            assert_eq!(statistics.sent + statistics.duplicated, gone, "seed {seed}");
        }
        let lost = link.statistics().lost;
        let causes = [
            lost.uniform,
            lost.bursts,
            lost.queue,
            lost.mtu,
            lost.blackout,
        ];
        assert!(causes.iter().all(|cause| *cause > 0), "{lost:?}");
    }
}

#[test]
fn bandwidth_is_never_exceeded_in_any_window_and_is_used() {
    for rate in [64_000, 1_000_000, 7_777_777, 1_000_000_000_u64] {
        let conditions = Conditions::default()
            .with_bandwidth(rate)
            .with_overhead(28)
            .with_queue_limit(100_000);
        let mut link = LinkConditioner::new(1, conditions);
        let mut random = Random::new(rate);
        let mut departures = Vec::new();
        let mut now = 0;
        // Random sizes and pauses, about twice as much as the link can carry.
        for _ in 0..3_000 {
            let size = random.range(0, 1400) as usize;
            link.send(Time::from_micros(now), &vec![0; size]);
            now += random.range(0, (728 * 8 * 1_000_000 / rate) as i64 + 2) as u64;
            while let Some(due) = link.next_delivery().filter(|due| due.as_micros() <= now) {
                while let Some(bytes) = link.poll(due) {
                    departures.push((due.as_micros(), (bytes.len() as u64 + 28) * 8));
                }
            }
        }
        let sums: Vec<u64> = departures
            .iter()
            .scan(0, |sum, (_, bits)| {
                *sum += bits;
                Some(*sum)
            })
            .collect();
        for (first, (start, _)) in departures.iter().enumerate() {
            for (last, (end, _)) in departures.iter().enumerate().skip(first + 1) {
                // A transmission that ends in the window began in it, except for rounding a time up.
                let bits = u128::from(sums[last] - sums[first]) * 1_000_000;
                let max = u128::from(rate) * u128::from(end - start + 1);
                assert!(bits <= max, "{rate} bit/s: {bits} of {max}");
            }
        }
        let length = u128::from(departures.last().expect("some").0);
        let used = u128::from(*sums.last().expect("some")) * 1_000_000;
        let percent = used * 100 / (u128::from(rate) * length);
        println!("{rate} bit/s: {percent} % used, {} datagrams", sums.len());
        assert!((95..=100).contains(&percent) || rate == 1_000_000_000);
    }
}

#[test]
fn rounding_is_late_and_does_not_add_up() {
    let mut link = LinkConditioner::new(1, Conditions::default().with_bandwidth(3));
    (0..3).for_each(|_| link.send(Time::ZERO, &[0]));
    let mut times = Vec::new();
    while let Some(now) = link.next_delivery() {
        while link.poll(now).is_some() {
            times.push(now.as_micros());
        }
    }
    assert_eq!(times, [2_666_667, 5_333_334, 8_000_000]);
}

#[test]
fn the_queue_is_bounded_and_its_delay_shows() {
    let conditions = Conditions::default()
        .with_bandwidth(1_000_000)
        .with_queue_limit(12_500);
    let mut link = LinkConditioner::new(1, conditions);
    // Twice the link's rate, for ten seconds.
    for number in 0..2_500 {
        link.send(Time::from_micros(number * 4_000), &[0; 1000]);
        assert!(link.queued_bytes() <= 12_500);
        while link.poll(Time::from_micros(number * 4_000)).is_some() {}
    }
    let statistics = link.statistics();
    let delay = &statistics.queue_delay;
    println!(
        "queue delay: half {:?}, 95 % {:?}, most {:?}; {} of {} lost",
        delay.p50(),
        delay.p95(),
        delay.max(),
        statistics.lost.queue,
        statistics.sent
    );
    // Twelve fit behind the one being sent, 8 ms each.
    assert!(delay.max().is_some_and(|max| max <= millis(8 * 13)));
    assert!(delay.p50().is_some_and(|half| half >= millis(90)));
    assert!(statistics.lost.queue.abs_diff(1250) < 20);
}

#[test]
fn a_link_of_no_rate_delivers_nothing_until_it_has_one() {
    let mut link = LinkConditioner::new(1, Conditions::default().with_bandwidth(0));
    link.send(Time::ZERO, &[0; 1000]);
    assert_eq!(link.next_delivery(), None);
    assert_eq!(link.poll(Time::from_secs(100)), None);
    let megabit = Conditions::default().with_bandwidth(1_000_000);
    link.change(Time::from_secs(100), megabit);
    let due = Time::from_secs(100) + millis(8);
    assert_eq!(link.next_delivery(), Some(due));
    assert!(link.poll(due).is_some());
}

#[test]
fn a_datagram_under_way_goes_on_at_the_new_rate() {
    let slow = Conditions::default().with_bandwidth(1_000_000);
    let fast = Conditions::default().with_bandwidth(4_000_000);
    let mut link = LinkConditioner::new(1, slow);
    link.change_at(Time::from_millis(4), fast);
    link.send(Time::ZERO, &[0; 1000]);
    link.send(Time::ZERO, &[1; 1000]);
    let mut arrivals = Vec::new();
    while let Some(now) = link.next_delivery() {
        while link.poll(now).is_some() {
            arrivals.push(now);
        }
    }
    // Half of it took 4 ms, the other half a fourth of that, the next one 2 ms.
    assert_eq!(arrivals, [5, 7].map(Time::from_millis));
}

#[test]
fn a_blackout_delivers_nothing_and_recovers() {
    let start = Time::from_secs(10);
    let length = Duration::from_secs(30);
    let conditions = Conditions::default()
        .with_latency(millis(100))
        .with_blackout(start, length);
    let mut link = LinkConditioner::new(1, conditions);
    let arrivals = drive(&mut link, 6_000, 10_000, 20);
    let end = start + length;
    assert!(arrivals.iter().all(|one| one.at < start || one.at >= end));
    let first_after = arrivals.iter().find(|one| one.at >= end);
    let recovered = first_after.expect("it recovers").at;
    assert_eq!(recovered, end + millis(100));
    // Sent in it: 3000. Due in it and sent before: 10, including the one due at its start.
    assert_eq!(link.statistics().lost.blackout, 3010);
    assert_eq!(arrivals.len(), 6000 - 3010);
}

#[test]
fn a_blackout_by_hand_does_the_same() {
    let mut link = LinkConditioner::new(1, Conditions::default().with_latency(millis(100)));
    link.send(Time::ZERO, b"before");
    link.set_blackout(Time::from_millis(50), true);
    link.send(Time::from_millis(60), b"inside");
    link.set_blackout(Time::from_millis(200), false);
    link.send(Time::from_millis(201), b"after");
    assert_eq!(link.poll(Time::from_millis(300)), None);
    let after = link.poll(Time::from_millis(301));
    assert_eq!(after.as_deref(), Some(&b"after"[..]));
    assert_eq!(link.statistics().lost.blackout, 2);
}

#[test]
fn what_is_due_when_conditions_change_is_not_touched() {
    let calm = Conditions::default().with_latency(millis(100));
    let dark = calm.clone().with_blackout(Time::ZERO, Duration::MAX);
    let mut link = LinkConditioner::new(1, calm);
    link.change_at(Time::from_millis(100), dark);
    link.send(Time::ZERO, b"in time");
    link.send(Time::from_micros(1), b"too late");
    let in_time = link.poll(Time::from_secs(1));
    assert_eq!(in_time.as_deref(), Some(&b"in time"[..]));
    assert_eq!(link.poll(Time::from_secs(1)), None);
    assert_eq!(link.statistics().lost.blackout, 1);
}

#[test]
fn larger_datagrams_than_the_mtu_are_dropped_and_it_may_fall() {
    let wide = Conditions::default().with_mtu(1500).with_overhead(28);
    let narrow = wide.clone().with_mtu(1200);
    let mut link = LinkConditioner::new(1, wide);
    link.change_at(Time::from_secs(1), narrow);
    let mut passes = |now, size: usize| {
        link.send(now, &vec![0; size]);
        link.poll(now).is_some()
    };
    let sizes = [1172, 1173, 1472, 1473];
    let before = sizes.map(|size| passes(Time::ZERO, size));
    let after = sizes.map(|size| passes(Time::from_secs(1), size));
    assert_eq!(before, [true, true, true, false]);
    assert_eq!(after, [true, false, false, false]);
    assert_eq!(link.statistics().lost.mtu, 4);
}

#[test]
fn time_that_runs_backwards_counts_as_the_latest() {
    let mut link = LinkConditioner::new(1, Conditions::default().with_latency(millis(10)));
    assert_eq!(link.poll(Time::from_secs(5)), None);
    link.send(Time::ZERO, b"late");
    assert_eq!(link.next_delivery(), Some(Time::from_secs(5) + millis(10)));
}

#[test]
fn nonsense_is_survived() {
    let never = Time::from_micros(u64::MAX);
    for seed in 0..5_000 {
        let mut random = Random::new(seed);
        let mut link = LinkConditioner::new(seed, nonsense(&mut random));
        let mut now = Time::ZERO;
        for _ in 0..20 {
            match random.range(0, 6) {
                0 => link.change(now, nonsense(&mut random)),
                1 => link.change_at(now + any_duration(&mut random), nonsense(&mut random)),
                2 => link.set_blackout(now, random.chance(300_000)),
                3 => now = now + any_duration(&mut random),
                4 => while link.poll(now).is_some() {},
                _ => link.send(now, &[0; 10][..random.range(0, 11) as usize]),
            }
            let _ = link.next_delivery();
        }
        while link.poll(never).is_some() {}
        let statistics = link.statistics();
        let gone = statistics.delivered + statistics.lost.total() + link.in_transit() as u64;
        assert_eq!(statistics.sent + statistics.duplicated, gone, "seed {seed}");
    }
}

/// Conditions that are each zero, small or far too large.
fn nonsense(random: &mut Random) -> Conditions {
    let any_size = |random: &mut Random| [0, 5, 1500, usize::MAX][random.range(0, 4) as usize];
    let any_share = |random: &mut Random| [0, 1, 500_000, u32::MAX][random.range(0, 4) as usize];
    let rate = [0, 1, 1_000_000, u64::MAX][random.range(0, 4) as usize];
    let mut conditions = Conditions::default()
        .with_latency(any_duration(random))
        .with_reordering_jitter(any_duration(random))
        .with_loss(any_share(random))
        .with_bursts(any_share(random), any_share(random))
        .with_reordering(any_share(random), any_duration(random))
        .with_duplication(any_share(random), any_duration(random))
        .with_corruption(any_share(random))
        .with_overhead(any_size(random))
        .with_blackout(Time::ZERO + any_duration(random), any_duration(random))
        .with_repeated_blackout(
            Time::ZERO + any_duration(random),
            any_duration(random),
            any_duration(random),
        );
    if random.chance(500_000) {
        conditions = conditions.with_bandwidth(rate);
    } else if random.chance(500_000) {
        let text = ["1", "0\n3\n3", "18446744073709551"][random.range(0, 3) as usize];
        conditions = conditions.with_recorded(RecordedLink::parse(text).expect("a recording"));
    }
    if random.chance(300_000) {
        conditions = conditions.with_queue_limit(any_size(random));
    }
    if random.chance(300_000) {
        conditions = conditions.with_mtu(any_size(random));
    }
    conditions
}

fn any_duration(random: &mut Random) -> Duration {
    let max = Duration::MAX;
    [Duration::ZERO, Duration::from_micros(1), millis(30), max][random.range(0, 4) as usize]
}

#[test]
fn every_preset_carries_a_game() {
    for preset in PRESETS {
        let conditions = Conditions::named(preset.name).expect("it is listed");
        let mut link = LinkConditioner::new(1, conditions);
        // 60 packets a second of 200 bytes for five minutes: 109 kbit/s with headers.
        let arrivals = drive(&mut link, 18_000, 16_667, 200);
        let statistics = link.statistics();
        println!(
            "{:<10} {:>5} of 18000 arrive, queue delay 95 % {:?}: {}",
            preset.name,
            arrivals.len(),
            statistics.queue_delay.p95().unwrap_or_default(),
            preset.description
        );
        assert!(arrivals.len() > 16_000, "{}", preset.name);
        assert_eq!(statistics.lost.queue, 0, "{}", preset.name);
    }
}
