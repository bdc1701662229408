//! The inputs of all clients, handed out one per tick.

use std::collections::BTreeMap;
use std::time::Duration;

use prescient_channels::{Input, InputTick};
use prescient_playout::{BufferedInput, InputBuffer, InputBufferConfig, Nudge};
use prescient_replication::PeerId;

use crate::server::Server;

/// A buffer per client that has sent input.
#[derive(Default)]
pub(super) struct InputBuffers {
    buffers: BTreeMap<PeerId, InputBuffer<Input>>,
}

impl InputBuffers {
    pub(super) fn push(
        &mut self,
        config: &InputBufferConfig,
        peer: PeerId,
        tick: InputTick,
        input: Input,
    ) {
        let buffer = match self.buffers.entry(peer) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                match InputBuffer::new(config.clone()) {
                    Ok(buffer) => entry.insert(buffer),
                    // `ServerOptions::check` refused these settings.
                    Err(_) => return,
                }
            }
        };
        // The connection hands on each input once and in order.
        let _ = buffer.push(tick.0, input);
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        self.buffers.remove(&peer);
    }
}

impl Server {
    /// Gives the program an input of each client whose buffer has one.
    pub(super) fn hand_out_inputs(&mut self) {
        let buffers = self.input_buffers.buffers.iter_mut();
        let next = buffers.filter_map(|(&peer, buffer)| match buffer.next_tick() {
            BufferedInput::Input(tick, input) => Some((peer, InputTick(tick), input)),
            BufferedInput::Missing | BufferedInput::Waiting => None,
        });
        for (peer, tick, input) in next.collect::<Vec<_>>() {
            self.give_input(peer, tick, input);
        }
    }

    /// How a client is to change the speed of its ticks, so that its inputs arrive neither too late
    /// nor too early: send it ([`Nudge::0`] is one byte) and let the client's
    /// [`TickRate`](prescient_playout::TickRate) handle it. At most one a second for each client.
    pub fn poll_nudge(&mut self) -> Option<(PeerId, Nudge)> {
        let mut buffers = self.input_buffers.buffers.iter_mut();
        buffers.find_map(|(&peer, buffer)| Some((peer, buffer.poll_nudge()?)))
    }

    pub(crate) fn max_rewind(&self) -> Duration {
        self.options.max_rewind
    }

    pub(crate) fn world_server_of(&self, peer: PeerId) -> &prescient_replication::Server {
        self.worlds.world_of(peer)
    }
}
