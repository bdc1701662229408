//! Pings with time stamps, from which both the round trip time and the other end's clock are
//! estimated.
#![allow(
    unreachable_pub,
    reason = "tests and fuzzers reach it through the feature `__test_hooks`"
)]

use std::collections::VecDeque;
use std::time::Duration;

use crate::bytes::{Reader, write_number};
use crate::time::Time;

/// A frame that asks the other end for its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// Tells it from the other ones that are not answered yet; its sender remembers when it was sent.
    pub id: u8,
}

impl Ping {
    /// Appends the frame with its type.
    pub fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend([PING, self.id]);
    }

    /// Reads what follows the type from the front of `bytes`.
    pub fn read(bytes: &mut &[u8]) -> Option<Self> {
        let id = Reader::take(bytes, Reader::u8)?;
        Some(Self { id })
    }

    /// The answer, if the ping arrived at `received` and the answer is sent now.
    pub fn answer(self, received: Time, now: Time) -> Pong {
        Pong {
            id: self.id,
            received,
            delay: now.since(received),
        }
    }
}

/// The answer to a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pong {
    /// The ping's.
    pub id: u8,
    /// When the ping arrived, by the answering end's clock.
    pub received: Time,
    /// How long the answer was delayed, by the same clock.
    pub delay: Duration,
}

impl Pong {
    /// Appends the frame with its type.
    pub fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend([PONG, self.id]);
        write_number(bytes, self.received.as_micros());
        let delay = u64::try_from(self.delay.as_micros());
        write_number(bytes, delay.unwrap_or(u64::MAX));
    }

    /// Reads what follows the type from the front of `bytes`.
    pub fn read(bytes: &mut &[u8]) -> Option<Self> {
        Reader::take(bytes, |reader| {
            Some(Self {
                id: reader.u8()?,
                received: Time::from_micros(reader.number()?),
                delay: Duration::from_micros(reader.number()?),
            })
        })
    }
}

/// A ping and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// When the ping was sent, by our clock.
    pub sent: Time,
    /// When the ping arrived, by the other end's clock.
    pub received: Time,
    /// When the answer was sent, by the other end's clock.
    pub answered: Time,
    /// When the answer arrived, by our clock.
    pub returned: Time,
}

impl Echo {
    /// The time on the path in both directions, without the other end's delay.
    pub fn round_trip(&self) -> Duration {
        let delay = self.answered.since(self.received);
        self.returned.since(self.sent).saturating_sub(delay)
    }
}

/// Sends pings, often at first and on links with jitter, and turns their answers into echoes.
#[derive(Clone, Debug)]
pub struct Pinger {
    next: Time,
    /// Of the next ping.
    id: u8,
    /// Pings without an answer and when they were sent, oldest first.
    unanswered: VecDeque<(u8, Time)>,
    answers: u32,
    /// The last round trip, and the average difference of one to the next.
    last: Option<Duration>,
    jitter: Duration,
}

impl Pinger {
    /// The first ping is due at once.
    pub fn new(now: Time) -> Self {
        Self {
            next: now,
            id: 0,
            unanswered: VecDeque::new(),
            answers: 0,
            last: None,
            jitter: Duration::ZERO,
        }
    }

    /// Whether a ping is due.
    pub fn is_due(&self, now: Time) -> bool {
        // If the clock was set back, `next` lies too far ahead.
        now >= self.next || self.next > now.after(PAUSE)
    }

    /// Something else measured the round trip, so no ping is needed for a while. For ends that do
    /// not estimate the other end's clock.
    pub fn put_off(&mut self, now: Time) {
        self.next = now.after(PAUSE);
    }

    /// The next ping.
    pub fn ping(&self) -> Ping {
        Ping { id: self.id }
    }

    /// [The next ping](Self::ping) is sent now, whether it is due or not.
    pub fn note(&mut self, now: Time) {
        let pause = match self.answers {
            0..HURRIED_ANSWERS => HURRIED_PAUSE,
            _ if self.jitter > JITTER => JITTER_PAUSE,
            _ => PAUSE,
        };
        self.next = now.after(pause);
        if self.unanswered.len() == UNANSWERED {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back((self.id, now));
        self.id = self.id.wrapping_add(1);
    }

    /// Handles an answer. `None` if it answers no ping of ours, if that was answered before, or if
    /// it claims a delay that is longer than we waited.
    pub fn handle_pong(&mut self, pong: Pong, now: Time) -> Option<Echo> {
        let index = self.unanswered.iter().position(|&(id, _)| id == pong.id)?;
        let (_, sent) = self.unanswered.remove(index)?;
        let waited = now.as_micros().checked_sub(sent.as_micros())?;
        if pong.delay > Duration::from_micros(waited) {
            return None;
        }
        let echo = Echo {
            sent,
            received: pong.received,
            answered: pong.received.after(pong.delay),
            returned: now,
        };
        self.answers = self.answers.saturating_add(1);
        let round_trip = echo.round_trip();
        let change = self
            .last
            .map_or(Duration::ZERO, |last| last.abs_diff(round_trip));
        self.jitter = (self.jitter * 7 + change.min(PAUSE)) / 8;
        self.last = Some(round_trip);
        Some(echo)
    }
}

/// The type of the ping frame.
pub const PING: u8 = 17;
/// The type of the pong frame.
pub const PONG: u8 = 18;

const PAUSE: Duration = Duration::from_secs(1);
/// The first few seconds ask more often, since little is known.
const HURRIED_PAUSE: Duration = Duration::from_millis(100);
const HURRIED_ANSWERS: u32 = 30;
/// On a link with more jitter than this, only some answers are useful, so it takes more of them.
const JITTER: Duration = Duration::from_millis(5);
const JITTER_PAUSE: Duration = Duration::from_millis(250);
/// More than can be in flight on any path.
const UNANSWERED: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    /// Fails if a field is left out or read in another order.
    #[test]
    fn frames_come_back_as_what_they_were() {
        let ping = Ping { id: 200 };
        let pong = ping.answer(at(1 << 40), at((1 << 40) + 1000));
        let mut bytes = Vec::new();
        ping.write(&mut bytes);
        pong.write(&mut bytes);
        Ping { id: 7 }.write(&mut bytes);
        let rest = &mut &bytes[1..];
        assert_eq!(Ping::read(rest), Some(ping));
        *rest = &rest[1..];
        assert_eq!(Pong::read(rest), Some(pong));
        assert_eq!(pong.delay, Duration::from_millis(1));
        *rest = &rest[1..];
        for length in 0..rest.len() {
            let mut cut = &rest[..length];
            assert_eq!((Ping::read(&mut cut), Pong::read(&mut cut)), (None, None));
            assert_eq!(cut.len(), length, "nothing was taken");
        }
        assert_eq!(Ping::read(rest), Some(Ping { id: 7 }));
    }

    /// Fails if answers are not matched with pings (without the search in `unanswered`), if pings
    /// have the same id (`wrapping_add` left out), or if their delay is not compared with the time
    /// that we waited.
    #[test]
    fn only_answers_to_our_own_questions_count() {
        let mut pinger = Pinger::new(at(1000));
        assert!(pinger.is_due(at(1000)));
        let ping = pinger.ping();
        pinger.note(at(1000));
        assert!(!pinger.is_due(at(1001)));
        let honest = ping.answer(at(77), at(80));
        let stranger = Ping { id: ping.id + 1 }.answer(at(77), at(80));
        assert_eq!(pinger.handle_pong(stranger, at(2000)), None);
        let echo = pinger.handle_pong(honest, at(2000)).expect("honest");
        assert_eq!(echo.round_trip(), Duration::from_micros(997));
        assert_eq!(pinger.handle_pong(honest, at(2000)), None, "twice");

        let now = at(5000);
        let ping = pinger.ping();
        pinger.note(now);
        let later = pinger.ping();
        pinger.note(at(6000));
        let boast = ping.answer(at(0), at(u64::MAX));
        assert_eq!(pinger.handle_pong(boast, at(now.as_micros() + 5)), None);
        let echo = pinger.handle_pong(later.answer(at(9), at(9)), at(6010));
        let echo = echo.expect("honest");
        assert_eq!(echo.round_trip(), Duration::from_micros(10));
    }

    /// Fails if pings go on as at first (`HURRIED_ANSWERS` of 1000), or as often on a steady link as
    /// on one with jitter (`JITTER` of zero or of a second).
    #[test]
    fn they_become_rare_unless_there_is_jitter() {
        let pings = |jitter: u64| {
            let (mut pinger, mut count) = (Pinger::new(at(0)), 0);
            for milli in 0..30_000u64 {
                let now = at(milli * 1000);
                if pinger.is_due(now) {
                    let pong = pinger.ping().answer(at(5), at(5));
                    pinger.note(now);
                    let trip = 20_000 + count * 7919 % 10 * jitter;
                    let echo = pinger.handle_pong(pong, at(milli * 1000 + trip));
                    assert!(echo.is_some());
                    count += 1;
                }
            }
            count
        };
        assert!((56..=58).contains(&pings(100)), "{}", pings(100));
        assert!((136..=140).contains(&pings(5_000)), "{}", pings(5_000));
    }

    /// Fails if a clock that is set back stops the pings (the second half of `is_due` left out), or
    /// if `unanswered` is not bounded.
    #[test]
    fn it_goes_on_through_blackouts_and_jumps() {
        let mut pinger = Pinger::new(at(0));
        for tenth in 0..1000 {
            let now = at(tenth * 100_000);
            assert!(pinger.is_due(now));
            pinger.note(now);
        }
        assert_eq!(pinger.unanswered.len(), UNANSWERED);
        assert!(pinger.is_due(at(5)), "far back");
        pinger.note(at(5));
        assert!(!pinger.is_due(at(6)));
        assert!(pinger.is_due(at(u64::MAX)));
    }
}
