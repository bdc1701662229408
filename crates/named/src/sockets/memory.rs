//! Queues between a forwarder and an application in the same process.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel,
};
use std::time::Duration;

use mio::Waker;

use crate::forwarder::FaceId;

/// The most queued packets in each direction.
const MAX_WAITING: usize = 1024;

/// The other end was dropped.
#[derive(Debug)]
pub(super) struct Gone;

/// The forwarder's end.
pub(super) struct MemoryPort {
    face: FaceId,
    to_app: SyncSender<Vec<u8>>,
    from_app: Receiver<Vec<u8>>,
}

/// The application's end.
pub(super) struct MemoryEnd {
    to_forwarder: SyncSender<Vec<u8>>,
    from_forwarder: Receiver<Vec<u8>>,
    waker: Arc<Waker>,
}

pub(super) fn pair(face: FaceId, waker: Arc<Waker>) -> (MemoryPort, MemoryEnd) {
    let (to_app, from_forwarder) = sync_channel(MAX_WAITING);
    let (to_forwarder, from_app) = sync_channel(MAX_WAITING);
    let port = MemoryPort {
        face,
        to_app,
        from_app,
    };
    let end = MemoryEnd {
        to_forwarder,
        from_forwarder,
        waker,
    };
    (port, end)
}

impl MemoryPort {
    pub(super) fn face(&self) -> FaceId {
        self.face
    }

    pub(super) fn receive(&mut self) -> Result<Option<Vec<u8>>, Gone> {
        match self.from_app.try_recv() {
            Ok(packet) => Ok(Some(packet)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Gone),
        }
    }

    /// False if the packet was dropped.
    pub(super) fn send(&mut self, packet: &[u8]) -> bool {
        self.to_app.try_send(packet.to_vec()).is_ok()
    }
}

impl MemoryEnd {
    pub(super) fn send(&self, packet: &[u8]) -> io::Result<()> {
        let sent = self.to_forwarder.try_send(packet.to_vec());
        sent.map_err(|error| match error {
            TrySendError::Full(_) => ErrorKind::WouldBlock,
            TrySendError::Disconnected(_) => ErrorKind::ConnectionAborted,
        })?;
        self.waker.wake()
    }

    pub(super) fn receive(&self, max_wait: Duration) -> Result<Option<Vec<u8>>, Gone> {
        match self.from_forwarder.recv_timeout(max_wait) {
            Ok(packet) => Ok(Some(packet)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Gone),
        }
    }
}
