//! Flows that share a bottleneck, in simulated time: each is an exchange at a server and one at a
//! client, with unlimited data from the server.

use std::collections::VecDeque;
use std::time::Duration;

use prescient_channels::{
    ChannelId, CongestionControl, Exchange, ExchangeConfig, Now, Path, Time as AttendedTime,
};
use prescient_sim::link::{Conditions, LinkConditioner, OPPORTUNITY_BYTES, Rate, Time};

/// A sender with unlimited data, and its receiver.
pub(super) struct Flow {
    server: Exchange,
    client: Exchange,
    sent: u64,
    answered: u64,
    /// How often the server sends, in milliseconds.
    every: u64,
    starts: Time,
    /// What is under way from the client.
    answers: VecDeque<(Time, u64, Vec<u8>)>,
    /// When datagrams arrived, how long they waited behind others, and their bytes.
    pub(super) arrivals: Vec<Arrived>,
    /// When datagrams were sent, and their bytes.
    pub(super) departures: Vec<(Time, usize)>,
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) at: Time,
    pub(super) bytes: usize,
    /// How long it waited for what others, or its own flow, had queued before it.
    pub(super) waited: Duration,
}

impl Flow {
    pub(super) fn new(policy: CongestionControl, every: u64, starts: Time) -> Self {
        let config = ExchangeConfig::default()
            .with_rate(prescient_channels::BytesPerSecond(MAX_RATE))
            .with_congestion(policy);
        let now = attended(Time::ZERO);
        Self {
            server: Exchange::of_server(&config, now),
            client: Exchange::of_client(&config, now),
            sent: 0,
            answered: 0,
            every,
            starts,
            answers: VecDeque::new(),
            arrivals: Vec::new(),
            departures: Vec::new(),
        }
    }

    /// Bytes that arrived from one time to another.
    pub(super) fn bytes(&self, from: Time, to: Time) -> u64 {
        let within = self
            .arrivals
            .iter()
            .filter(|arrived| (from..to).contains(&arrived.at));
        within.map(|arrived| arrived.bytes as u64).sum()
    }

    fn send(&mut self, now: Time, number: usize, link: &mut LinkConditioner<(usize, Time)>) {
        let at = attended(now);
        self.server
            .handle_timeout(at, &mut Wire)
            .expect("an honest peer");
        if now >= self.starts && (now.as_micros() / 1000).is_multiple_of(self.every) {
            let capacity = self.server.capacity(OVERHEAD, at, &Wire);
            let mut left = capacity.total;
            while left >= capacity.message && capacity.message > 0 {
                let message = vec![0; capacity.message];
                self.server
                    .send(ChannelId::UNRELIABLE, &message)
                    .expect("no more than the capacity");
                left -= capacity.message;
            }
        }
        let both = Now { now: at, clock: at };
        while let Some(body) = self.server.poll_body(self.sent, OVERHEAD, both, &mut Wire) {
            let mut datagram = self.sent.to_le_bytes().to_vec();
            datagram.resize(OVERHEAD, 0);
            datagram.extend_from_slice(&body);
            self.sent += 1;
            self.departures.push((now, datagram.len() + HEADERS));
            link.send_labelled(now, (number, now), &datagram);
        }
        while self.server.poll_event().is_some() {}
    }

    fn receive(&mut self, now: Time, datagram: &[u8]) {
        let at = attended(now);
        let (head, body) = datagram.split_at(OVERHEAD);
        let number = head.first_chunk().copied().map(u64::from_le_bytes);
        let number = number.expect("it has a head");
        self.client
            .handle_body(
                number,
                body,
                self.answered,
                Now { now: at, clock: at },
                &mut Wire,
            )
            .expect("an honest peer");
        while self.client.poll_event().is_some() {}
    }

    /// The client sends something with every tick, and acknowledgements when they are due.
    fn answer(&mut self, now: Time, latency: Duration) {
        let at = attended(now);
        self.client
            .handle_timeout(at, &mut Wire)
            .expect("an honest peer");
        if (now.as_micros() / 1000).is_multiple_of(33) && now >= self.starts {
            // What finds no room is made up for by the next.
            let _ = self.client.send(ChannelId::UNRELIABLE, &[1, 2, 3]);
        }
        let both = Now { now: at, clock: at };
        while let Some(body) = self
            .client
            .poll_body(self.answered, OVERHEAD, both, &mut Wire)
        {
            self.answers
                .push_back((now + latency, self.answered, body.to_vec()));
            self.answered += 1;
        }
        while let Some((_, number, body)) = self.answers.pop_front_if(|(due, ..)| *due <= now) {
            self.server
                .handle_body(number, &body, self.sent, both, &mut Wire)
                .expect("an honest peer");
        }
    }
}

/// Runs flows over one bottleneck; `changes` are other conditions from a time on.
pub(super) fn run(
    flows: &mut [Flow],
    conditions: &Conditions,
    changes: &[(Time, Conditions)],
    end: Time,
) {
    let mut link = LinkConditioner::labelled(1, conditions.clone());
    for (at, conditions) in changes {
        link.change_at(*at, conditions.clone());
    }
    let mut now = Time::ZERO;
    while now < end {
        for (number, flow) in flows.iter_mut().enumerate() {
            flow.send(now, number, &mut link);
        }
        while let Some(((number, sent), datagram)) = link.poll_labelled(now) {
            let bytes = datagram.len() + HEADERS;
            let rate = &link.conditions().rate;
            let alone = alone(rate, sent, bytes) + conditions.latency;
            flows[number].arrivals.push(Arrived {
                at: now,
                bytes,
                waited: now.since(alone),
            });
            flows[number].receive(now, &datagram);
        }
        for flow in flows.iter_mut() {
            flow.answer(now, conditions.latency);
        }
        now = now + Duration::from_millis(1);
    }
}

/// When a datagram would have left a bottleneck with nothing else in it.
fn alone(rate: &Rate, sent: Time, bytes: usize) -> Time {
    match rate {
        Rate::Constant(bits) => {
            let micros = bytes as u64 * 8_000_000 / (*bits).max(1);
            sent + Duration::from_micros(micros)
        }
        Rate::Recorded(link) => {
            let needed = bytes.div_ceil(OPPORTUNITY_BYTES) as u64;
            link.opportunity(link.opportunities_until(sent) + needed - 1)
        }
        _ => sent,
    }
}

/// A path without limits of its own.
struct Wire;

impl Path for Wire {
    fn max_packet(&self) -> usize {
        1200
    }

    fn on_acknowledged(&mut self, _: usize, _: bool, _: AttendedTime) {}

    fn on_lost(&mut self, _: usize, _: bool, _: AttendedTime) {}
}

fn attended(now: Time) -> AttendedTime {
    AttendedTime::from_micros(now.as_micros() + (1 << 32))
}

/// What a secure connection adds to a body.
const OVERHEAD: usize = 24;
/// IP and UDP headers.
pub(super) const HEADERS: usize = 28;
/// So high that only the policy limits the rate.
const MAX_RATE: u64 = 100_000_000;
