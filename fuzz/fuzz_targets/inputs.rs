//! Inputs that are pushed, lost, delivered, repeated and forged: no panic, no frame beyond its
//! room, every input once and in order, and no key press that was not made.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_channels::parts::*;
use prescient_channels::*;

#[derive(Arbitrary, Debug)]
enum Action {
    Push {
        skip: u16,
        keys_down: Vec<u8>,
        pressed: Vec<u8>,
        pointer: [i32; 2],
        fields: Vec<u8>,
    },
    Repeat {
        times: u8,
    },
    Deliver {
        known: bool,
    },
    Late {
        index: u8,
    },
}

struct World {
    sender: InputSender,
    receiver: InputReceiver,
    room: usize,
    tick: u64,
    input: Input,
    frames: Vec<Vec<u8>>,
    last: Option<InputTick>,
    pressed: Keys,
    arrived: Keys,
}

impl World {
    fn push(&mut self) {
        self.tick += 1;
        self.pressed = self.pressed.or(self.input.pressed);
        let number = InputTick(self.tick);
        self.sender
            .push(number, self.input.clone())
            .expect("in order, and short");
        let (newest, frame) = self.sender.frame().expect("something waits");
        assert_eq!(newest, number);
        assert!(frame.len() <= self.room.max(140));
        assert!(self.sender.waiting() <= MAX_INPUTS);
        self.frames.push(frame.to_vec());
        self.frames.drain(..self.frames.len().saturating_sub(50));
    }

    fn arrive(&mut self, frame: &[u8]) {
        let inputs = self.receiver.handle(&frame[1..]).expect("honest");
        for (tick, input) in inputs {
            assert!(Some(tick) > self.last, "each once, in order");
            self.last = Some(tick);
            self.arrived = self.arrived.or(input.pressed);
        }
    }

    fn step(&mut self, step: Action) {
        match step {
            Action::Push {
                skip,
                keys_down,
                pressed,
                pointer,
                mut fields,
            } => {
                self.tick += u64::from(skip);
                fields.truncate(MAX_FIELDS);
                self.input = Input {
                    keys_down: keys_down.into_iter().collect(),
                    pressed: pressed.into_iter().collect(),
                    pointer,
                    fields,
                };
                self.push();
                self.input.pressed = Keys::NONE;
            }
            Action::Repeat { times } => (0..times % 70).for_each(|_| self.push()),
            Action::Deliver { known } => {
                if let Some((newest, frame)) = self.sender.frame() {
                    let frame = frame.to_vec();
                    self.arrive(&frame);
                    assert_eq!(self.last, Some(newest));
                    assert_eq!(self.arrived, self.pressed, "every key that was pressed");
                    if known {
                        self.sender.on_arrived(newest);
                    }
                }
            }
            Action::Late { index } => {
                let index = usize::from(index).checked_rem(self.frames.len());
                if let Some(frame) = index.map(|index| self.frames[index].clone()) {
                    self.arrive(&frame);
                }
            }
        }
    }
}

fuzz_target!(|script: (u16, Vec<Action>, Vec<u8>)| {
    let (room, steps, forged) = script;
    let room = usize::from(room) % 300;
    let mut world = World {
        sender: InputSender::new(room),
        receiver: InputReceiver::new(),
        room,
        tick: 0,
        input: Input::default(),
        frames: Vec::new(),
        last: None,
        pressed: Keys::NONE,
        arrived: Keys::NONE,
    };
    for step in steps.into_iter().take(40) {
        world.step(step);
    }
    // Any frame of a hostile client, in any state.
    if let Ok(inputs) = world.receiver.handle(&forged) {
        assert!(inputs.len() <= MAX_INPUTS);
        for (tick, input) in inputs {
            assert!(Some(tick) > world.last && input.fields.len() <= MAX_FIELDS);
            world.last = Some(tick);
        }
    }
});
