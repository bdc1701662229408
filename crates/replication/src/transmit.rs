//! Messages that a server or client sends, with the delivery that they need.

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The guarantee that the message needs.
    pub delivery: Delivery,
    /// The message, after `headroom` free bytes.
    pub buffer: Vec<u8>,
    /// Free bytes before the message, where a carrier can put its headers ([`Room::headroom`]); 0 in
    /// reliable messages.
    ///
    /// [`Room::headroom`]: crate::Room::headroom
    pub headroom: usize,
}

/// A guarantee of the carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The message arrives once, in the order of sending.
    Reliable,
    /// The message arrives once, as soon as possible.
    Unordered,
    /// It may be lost, late or repeated.
    Unreliable,
    /// It may be lost, and does not arrive after one that was sent later.
    Sequenced,
}

impl Transmit {
    pub(crate) fn unreliable(message: Vec<u8>) -> Self {
        Self::new(Delivery::Unreliable, message)
    }

    pub(crate) fn new(delivery: Delivery, message: Vec<u8>) -> Self {
        Self {
            delivery,
            buffer: message,
            headroom: 0,
        }
    }

    /// The message.
    pub fn message(&self) -> &[u8] {
        &self.buffer[self.headroom..]
    }

    /// The message without free bytes before it.
    pub fn into_message(mut self) -> Vec<u8> {
        self.buffer.drain(..self.headroom);
        self.buffer
    }
}
