//! For each attack the packet bodies that cost the server the most; see WIRE.md for their format.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use prescient_replication::Client as View;

use crate::AttackKind;

/// Counters of the generated bodies.
#[derive(Default)]
pub struct Bodies {
    tick: u64,
    number: u64,
    blob: u64,
}

impl Bodies {
    pub fn next(&mut self, kind: AttackKind, view: &mut View) -> Vec<u8> {
        let mut body = Vec::new();
        match kind {
            AttackKind::InputFrames => {
                for _ in 0..64 {
                    self.repeated_input(&[], &mut body);
                }
            }
            AttackKind::Inputs => self.repeated_input(&[7; 32], &mut body),
            AttackKind::Presses => self.presses(&mut body),
            AttackKind::Messages => self.unreliable(&event(view), &mut body),
            AttackKind::Singles => message(UNRELIABLE, None, &event(view), &mut body),
            AttackKind::Reliable => {
                let event = event(view);
                for _ in 0..64 {
                    message(RELIABLE | UNORDERED, Some(self.number), &event, &mut body);
                    self.number += 1;
                }
            }
            AttackKind::Acks => {
                let ack = view.acknowledgement().unwrap_or_else(|| event(view));
                (0..64).for_each(|_| message(UNRELIABLE, None, &ack, &mut body));
            }
            AttackKind::States => {
                let state = [0x40 | event(view)[0] & 0x0f, 1, 8, 0, 0x84, 0xf4];
                self.unreliable(&state, &mut body);
            }
            AttackKind::Audits => {
                // A report as if the server had requested an audit.
                let _ = view.handle(&[AUDIT_REQUEST]);
                let answer = view.poll_message().unwrap_or_default();
                let mut short = answer[..2.min(answer.len())].to_vec();
                short.truncate(2);
                self.unreliable(&short, &mut body);
            }
            AttackKind::Requests => {
                for _ in 0..64 {
                    let payload = [(self.number as u8) & 0x3f];
                    message(RELIABLE | REQUESTS, Some(self.number), &payload, &mut body);
                    self.number += 1;
                }
            }
            AttackKind::Offers => {
                for _ in 0..32 {
                    for kind in [0, 2] {
                        let mut about = vec![kind];
                        number(self.blob, &mut about);
                        about.extend((kind == 0).then_some(1));
                        message(RELIABLE | BLOBS, Some(self.number), &about, &mut body);
                        self.number += 1;
                    }
                    self.blob += 1;
                }
            }
            AttackKind::Fragments => {
                for _ in 0..64 {
                    // Message numbers beyond the window would close the connection.
                    let channel = UNORDERED;
                    body.push(MESSAGE | RELIABLE | FRAGMENT | channel);
                    number(self.number % 1024, &mut body);
                    body.extend([0, 2, 1, 7]);
                    self.number += 1;
                }
            }
            AttackKind::Reports => {
                for _ in 0..8 {
                    body.extend([2, 127, 0, 0, 0, 63]);
                    body.extend([0; 126]);
                }
            }
            AttackKind::Pings => (0..64).for_each(|_| body.extend([17, 1])),
            AttackKind::Empty => body.push(3),
            AttackKind::Ungreeted => {
                let event = event(view);
                (0..63).for_each(|_| message(UNRELIABLE, None, &event, &mut body));
                self.repeated_input(&[], &mut body);
            }
            AttackKind::Junk | AttackKind::Handshakes => unreachable!("no client sends these"),
        }
        body
    }

    fn unreliable(&mut self, content: &[u8], body: &mut Vec<u8>) {
        (0..64).for_each(|_| message(UNRELIABLE, None, content, body));
    }

    /// An input that is repeated 63 times.
    fn repeated_input(&mut self, fields: &[u8], body: &mut Vec<u8>) {
        self.tick += 64;
        body.push(19);
        number(self.tick, body);
        body.push(1);
        body.push(1 << 6 | u8::from(!fields.is_empty()) << 5);
        if !fields.is_empty() {
            body.push(fields.len() as u8);
            body.extend_from_slice(fields);
        }
        body.push(63);
    }

    /// Inputs that press all keys, contiguous from the first tick on.
    fn presses(&mut self, body: &mut Vec<u8>) {
        self.tick += 64;
        body.push(19);
        number(self.tick, body);
        body.push(28);
        for index in 0..28 {
            body.push(1 << 1 | 1 << 3);
            number(self.tick + index, body);
            body.push(32);
            body.extend([0xff; 32]);
        }
    }
}

/// An event without a payload.
fn event(view: &View) -> Vec<u8> {
    view.send_event(None, b"").expect("it names no entity")
}

fn message(kind: u8, count: Option<u64>, content: &[u8], body: &mut Vec<u8>) {
    body.push(MESSAGE | kind);
    if let Some(count) = count {
        number(count, body);
    }
    number(content.len() as u64, body);
    body.extend_from_slice(content);
}

fn number(mut number: u64, body: &mut Vec<u8>) {
    while number >= 0x80 {
        body.push(number as u8 | 0x80);
        number >>= 7;
    }
    body.push(number as u8);
}

const MESSAGE: u8 = 0x80;
const RELIABLE: u8 = 0x40;
const FRAGMENT: u8 = 0x20;
const UNORDERED: u8 = 1;
const UNRELIABLE: u8 = 2;
const REQUESTS: u8 = 14;
const BLOBS: u8 = 15;
/// The server's request for an audit.
const AUDIT_REQUEST: u8 = 0xf4;
