//! A client in the server's own process: two queues in place of a connection.
//!
//! The queues carry the same messages as a connection, so the layers above do not distinguish the
//! two. Both ends may live on one thread, where neither ever blocks on the other, or on two.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prescient_channels::{
    BlobError, BlobId, Carrier, CarrierEvent, ChannelId, CloseReason, ConnectionId, Input,
    InputError, InputTick, MAX_FIELDS, Received, RequestError, RequestId, Requests, SendError,
    Time,
};

use crate::clock::Clock;

/// The server's carrier for local clients.
pub(crate) struct LocalServer {
    clients: BTreeMap<ConnectionId, End>,
    /// How many clients were ever added; the source of their ids.
    added: u64,
    clock: Clock,
    max_message: usize,
}

/// The client's carrier inside the server's process. Dropping it leaves the server.
pub(crate) struct LocalClient {
    end: End,
    clock: Clock,
    /// The server's limit for connections applies to local clients, too.
    max_message: usize,
    /// An input for which there was no room.
    unsent_input: Option<Input>,
}

impl LocalServer {
    pub(crate) fn new(max_message: usize) -> Self {
        Self {
            clients: BTreeMap::new(),
            added: 0,
            clock: Clock::start(),
            max_message,
        }
    }

    pub(crate) fn add_client(&mut self) -> (ConnectionId, LocalClient) {
        let (client, peer) = pair();
        self.added += 1;
        let id = ConnectionId(self.added);
        self.clients.insert(id, peer);
        let client = LocalClient {
            end: client,
            clock: self.clock,
            max_message: self.max_message,
            unsent_input: None,
        };
        (id, client)
    }
}

impl LocalServer {
    fn end_of(&mut self, connection: ConnectionId) -> Result<&mut End, BlobError> {
        let end = self.clients.get_mut(&connection);
        end.ok_or(BlobError::NotConnected)
    }
}

impl Carrier for LocalServer {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn poll(&mut self) -> Option<CarrierEvent> {
        let now = self.clock.now();
        let clients = self.clients.iter_mut();
        let mut arrivals = clients.filter_map(|(id, peer)| Some((*id, peer.poll(now)?)));
        let (connection, arrival) = arrivals.next()?;
        Some(match arrival {
            Arrival::Received(received) => CarrierEvent::Received {
                connection,
                received,
            },
            Arrival::Closed(reason) => {
                self.clients.remove(&connection);
                CarrierEvent::Closed { connection, reason }
            }
        })
    }

    /// Does not wait: clients on this thread could not send meanwhile.
    fn wait_until(&mut self, _: Time) -> Option<CarrierEvent> {
        self.poll()
    }

    fn send(
        &mut self,
        connection: ConnectionId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        check_length(message, self.max_message)?;
        let peer = self.clients.get(&connection);
        let peer = peer.ok_or(SendError::NotConnected)?;
        peer.send(received_message(channel, message))
    }

    fn offer_blob(
        &mut self,
        connection: ConnectionId,
        label: &[u8],
        bytes: Vec<u8>,
    ) -> Result<BlobId, BlobError> {
        self.end_of(connection)?.offer_blob(label, bytes)
    }

    fn accept_blob(&mut self, connection: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        self.end_of(connection)?.accept_blob(blob)
    }

    fn cancel_blob(&mut self, connection: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        self.end_of(connection)?.cancel_blob(blob)
    }

    fn request(
        &mut self,
        connection: ConnectionId,
        message: &[u8],
        timeout: Duration,
    ) -> Result<RequestId, SendError> {
        check_length(message, self.max_message)?;
        let until = self.clock.now().after(timeout);
        let peer = self.clients.get_mut(&connection);
        peer.ok_or(SendError::NotConnected)?.request(message, until)
    }

    fn respond(
        &mut self,
        connection: ConnectionId,
        request: RequestId,
        message: &[u8],
    ) -> Result<(), SendError> {
        check_length(message, self.max_message)?;
        let peer = self.clients.get(&connection);
        peer.ok_or(SendError::NotConnected)?
            .respond(request, message)
    }

    fn push_input(&mut self, _: InputTick, _: Input) -> Result<(), InputError> {
        Err(InputError::NotConnected)
    }

    fn flush(&mut self) {}

    fn close(&mut self, connection: ConnectionId, reason: CloseReason) {
        if let Some(peer) = self.clients.get(&connection) {
            peer.close(reason);
        }
    }

    fn shut_down(&mut self, reason: CloseReason) {
        for peer in self.clients.values() {
            peer.close(reason);
        }
    }
}

impl Carrier for LocalClient {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn poll(&mut self) -> Option<CarrierEvent> {
        let connection = ConnectionId::SERVER;
        Some(match self.end.poll(self.clock.now())? {
            Arrival::Received(received) => CarrierEvent::Received {
                connection,
                received,
            },
            Arrival::Closed(reason) => CarrierEvent::Closed { connection, reason },
        })
    }

    fn wait_until(&mut self, deadline: Time) -> Option<CarrierEvent> {
        loop {
            let left = deadline.since(self.clock.now());
            match self.poll() {
                None if !left.is_zero() && MAY_BLOCK => self.end.sleep(left),
                event => return event,
            }
        }
    }

    fn send(
        &mut self,
        _: ConnectionId,
        channel: ChannelId,
        message: &[u8],
    ) -> Result<(), SendError> {
        check_length(message, self.max_message)?;
        self.end.send(received_message(channel, message))
    }

    fn offer_blob(
        &mut self,
        _: ConnectionId,
        label: &[u8],
        bytes: Vec<u8>,
    ) -> Result<BlobId, BlobError> {
        self.end.offer_blob(label, bytes)
    }

    fn accept_blob(&mut self, _: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        self.end.accept_blob(blob)
    }

    fn cancel_blob(&mut self, _: ConnectionId, blob: BlobId) -> Result<(), BlobError> {
        self.end.cancel_blob(blob)
    }

    fn request(
        &mut self,
        _: ConnectionId,
        message: &[u8],
        timeout: Duration,
    ) -> Result<RequestId, SendError> {
        check_length(message, self.max_message)?;
        let until = self.clock.now().after(timeout);
        self.end.request(message, until)
    }

    fn respond(
        &mut self,
        _: ConnectionId,
        request: RequestId,
        message: &[u8],
    ) -> Result<(), SendError> {
        check_length(message, self.max_message)?;
        self.end.respond(request, message)
    }

    fn push_input(&mut self, tick: InputTick, mut input: Input) -> Result<(), InputError> {
        if input.fields.len() > MAX_FIELDS {
            return Err(InputError::Fields(input.fields.len()));
        }
        if let Some(unsent_input) = self.unsent_input.take() {
            input.pressed = input.pressed.or(unsent_input.pressed);
        }
        let sent = self.end.send(Received::Input {
            tick,
            input: input.clone(),
        });
        match sent {
            // Merge the presses into the next input.
            Err(SendError::Backlogged) => {
                self.unsent_input = Some(input);
                Ok(())
            }
            Err(_) => Err(InputError::NotConnected),
            Ok(()) => Ok(()),
        }
    }

    fn flush(&mut self) {}

    fn close(&mut self, _: ConnectionId, reason: CloseReason) {
        self.end.close(reason);
    }

    fn shut_down(&mut self, reason: CloseReason) {
        self.end.close(reason);
    }

    /// Both ends have the same clock.
    fn remote_time(&mut self, _: ConnectionId) -> Option<Time> {
        Some(self.clock.now())
    }
}

fn unanswered(request: RequestId, error: RequestError) -> Arrival {
    Arrival::Received(Received::Answer {
        request,
        answer: Err(error),
    })
}

fn received_message(channel: ChannelId, message: &[u8]) -> Received {
    Received::Message {
        channel,
        message: message.to_vec(),
    }
}

/// Applies the limit of connections to local clients too, so that a game does not first fail when
/// played online.
fn check_length(message: &[u8], limit: usize) -> Result<(), SendError> {
    match message.len() {
        length if length > limit => Err(SendError::TooLong { length, limit }),
        _ => Ok(()),
    }
}

/// Both ends of a new local connection: the client's, and the server's. Dropping the client's
/// leaves the server; dropping the server's closes the client as shutting down.
fn pair() -> (End, End) {
    let up = Arc::<Line>::default();
    let down = Arc::<Line>::default();
    let client = End {
        outgoing: up.clone(),
        incoming: down.clone(),
        offered: 0,
        requests: Requests::default(),
        closed: None,
        farewell: CloseReason::Finished,
    };
    let peer = End {
        outgoing: down,
        incoming: up,
        offered: 0,
        requests: Requests::default(),
        closed: None,
        farewell: CloseReason::ShuttingDown,
    };
    (client, peer)
}

/// A message, input or notice from the other end.
#[derive(Debug, PartialEq, Eq)]
enum Arrival {
    Received(Received),
    /// Reported once; nothing follows.
    Closed(CloseReason),
}

struct End {
    outgoing: Arc<Line>,
    incoming: Arc<Line>,
    /// How many blobs this end has offered.
    offered: u64,
    requests: Requests,
    /// Why the connection has ended, until that is reported.
    closed: Option<CloseReason>,
    /// The reason that the other end gets when this one is dropped.
    farewell: CloseReason,
}

impl End {
    fn send(&self, what: Received) -> Result<(), SendError> {
        self.outgoing.put(what)
    }

    fn poll(&mut self, now: Time) -> Option<Arrival> {
        if let Some(request) = self.requests.expired(now) {
            return Some(unanswered(request, RequestError::TimedOut));
        }
        while self.closed.is_none() {
            match self.incoming.take()? {
                Arrival::Received(Received::Answer { request, .. })
                    if !self.requests.close(request.number()) => {}
                Arrival::Closed(reason) => self.closed = Some(reason),
                arrival => return Some(arrival),
            }
        }
        match self.requests.expired(Time::from_micros(u64::MAX)) {
            Some(request) => Some(unanswered(request, RequestError::Closed)),
            None => self.closed.take().map(Arrival::Closed),
        }
    }

    fn request(&mut self, message: &[u8], until: Time) -> Result<RequestId, SendError> {
        if self.requests.is_full() {
            return Err(SendError::Backlogged);
        }
        let number = self.requests.open(until);
        let sent = self.send(Received::Request {
            request: RequestId::new(number, false),
            message: message.to_vec(),
        });
        if let Err(error) = sent {
            self.requests.close(number);
            return Err(error);
        }
        Ok(RequestId::new(number, true))
    }

    fn respond(&self, request: RequestId, message: &[u8]) -> Result<(), SendError> {
        if request.is_ours() {
            return Err(SendError::NotAsked);
        }
        self.send(Received::Answer {
            request: RequestId::new(request.number(), true),
            answer: Ok(message.to_vec()),
        })
    }

    /// The bytes stay here until the other end accepts them: nothing has to travel.
    fn offer_blob(&mut self, label: &[u8], bytes: Vec<u8>) -> Result<BlobId, BlobError> {
        if label.len() > MAX_LABEL {
            return Err(BlobError::Label(label.len()));
        }
        if self.outgoing.lock().blobs.len() >= MAX_BLOBS {
            return Err(BlobError::TooMany);
        }
        let (number, size) = (self.offered, bytes.len() as u64);
        let offer = Received::BlobOffered {
            blob: BlobId::new(number, false),
            label: label.to_vec(),
            size,
        };
        self.send(offer).map_err(|error| match error {
            SendError::Backlogged => BlobError::Backlogged,
            _ => BlobError::NotConnected,
        })?;
        self.outgoing.lock().blobs.insert(number, bytes);
        self.offered += 1;
        Ok(BlobId::new(number, true))
    }

    fn accept_blob(&mut self, blob: BlobId) -> Result<(), BlobError> {
        let number = blob.number();
        let bytes = match blob.is_ours() {
            true => None,
            false => self.incoming.lock().blobs.remove(&number),
        };
        let bytes = bytes.ok_or(BlobError::NoSuchBlob)?;
        let delivered = BlobId::new(number, true);
        self.outgoing
            .put_unbounded(Received::BlobDelivered { blob: delivered });
        self.incoming
            .put_unbounded(Received::BlobArrived { blob, bytes });
        Ok(())
    }

    fn cancel_blob(&mut self, blob: BlobId) -> Result<(), BlobError> {
        let number = blob.number();
        let line = match blob.is_ours() {
            true => &self.outgoing,
            false => &self.incoming,
        };
        let bytes = line.lock().blobs.remove(&number);
        bytes.ok_or(BlobError::NoSuchBlob)?;
        let blob = BlobId::new(number, !blob.is_ours());
        self.outgoing
            .put_unbounded(Received::BlobCancelled { blob });
        Ok(())
    }

    /// Sleeps until something arrives, for `span` at most.
    fn sleep(&self, span: Duration) {
        self.incoming.sleep(span);
    }

    /// Messages sent before are still delivered; received but unread messages are discarded.
    fn close(&self, reason: CloseReason) {
        self.outgoing.close(reason);
        self.incoming.discard();
        self.incoming.close(reason);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.close(self.farewell);
    }
}

/// One direction of a local connection.
#[derive(Default)]
struct Line {
    state: Mutex<State>,
    /// Wakes the receiver.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Received>,
    bytes: usize,
    /// Blobs that the sender offered and the receiver has not accepted.
    blobs: BTreeMap<u64, Vec<u8>>,
    /// Why nothing follows the waiting messages, and whether the receiver was told.
    end: Option<(CloseReason, bool)>,
}

impl Line {
    fn put(&self, what: Received) -> Result<(), SendError> {
        let mut state = self.lock();
        let cost = cost(&what);
        if state.end.is_some() {
            return Err(SendError::NotConnected);
        }
        if state.bytes + cost > MAX_WAITING_BYTES {
            return Err(SendError::Backlogged);
        }
        state.bytes += cost;
        state.waiting.push_back(what);
        self.changed.notify_one();
        Ok(())
    }

    /// Like [`put`](Self::put) for what is bounded by the number of blobs.
    fn put_unbounded(&self, what: Received) {
        let mut state = self.lock();
        if state.end.is_none() {
            state.bytes += cost(&what);
            state.waiting.push_back(what);
            self.changed.notify_one();
        }
    }

    fn take(&self) -> Option<Arrival> {
        let mut state = self.lock();
        if let Some(what) = state.waiting.pop_front() {
            state.bytes -= cost(&what);
            return Some(Arrival::Received(what));
        }
        let (reason, is_reported) = state.end.as_mut()?;
        (!std::mem::replace(is_reported, true)).then_some(Arrival::Closed(*reason))
    }

    /// Only the first reason is kept.
    fn close(&self, reason: CloseReason) {
        self.lock().end.get_or_insert((reason, false));
        self.changed.notify_one();
    }

    fn discard(&self) {
        let mut state = self.lock();
        state.waiting.clear();
        state.blobs.clear();
        state.bytes = 0;
    }

    fn sleep(&self, span: Duration) {
        let is_quiet = |state: &mut State| {
            let is_over = matches!(state.end, Some((_, false)));
            state.waiting.is_empty() && !is_over
        };
        let woken = (self.changed).wait_timeout_while(self.lock(), span, is_quiet);
        drop(woken.unwrap_or_else(PoisonError::into_inner));
    }

    /// No code panics while it holds the lock, so a poisoned lock is still consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cost(what: &Received) -> usize {
    let bytes = match what {
        Received::Message { message, .. } => message.len(),
        Received::Input { input, .. } => input.fields.len(),
        Received::BlobOffered { label, .. } => label.len(),
        Received::Request { message, .. } => message.len(),
        Received::Answer { answer, .. } => answer.as_ref().map_or(0, Vec::len),
        _ => 0,
    };
    bytes + size_of::<Received>()
}

/// A browser must not be blocked; its event loop calls again.
const MAY_BLOCK: bool = !cfg!(target_family = "wasm");
/// Bytes that may wait in either direction; as many as for a connection.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// Offered blobs of either end, and bytes of their labels; as for a connection.
const MAX_BLOBS: usize = 8;
const MAX_LABEL: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(0);

    fn message(bytes: &[u8]) -> Received {
        Received::Message {
            channel: ChannelId::ORDERED,
            message: bytes.to_vec(),
        }
    }

    /// Fails if `put` has no bound, or if `take` does not subtract the bytes it removes.
    #[test]
    fn a_line_holds_no_more_than_it_may() {
        let (client, mut peer) = pair();
        let long = vec![7; 100_000];
        for _ in 0..3 {
            let sent = (0..100).take_while(|_| client.send(message(&long)).is_ok());
            assert_eq!(sent.count(), 10);
            assert_eq!(client.send(message(&long)), Err(SendError::Backlogged));
            let got = std::iter::from_fn(|| peer.poll(NOW));
            assert_eq!(got.count(), 10);
        }
    }

    /// Fails if dropping an end does not close the connection, or discards messages sent before.
    #[test]
    fn a_dropped_end_closes_the_other() {
        let (client, mut peer) = pair();
        client.send(message(b"bye")).expect("there is room");
        drop(client);
        assert_eq!(peer.send(message(b"wait")), Err(SendError::NotConnected));
        assert_eq!(peer.poll(NOW), Some(Arrival::Received(message(b"bye"))));
        let left = Arrival::Closed(CloseReason::Finished);
        assert_eq!((peer.poll(NOW), peer.poll(NOW)), (Some(left), None));

        let (mut client, peer) = pair();
        drop(peer);
        let closed = Arrival::Closed(CloseReason::ShuttingDown);
        assert_eq!((client.poll(NOW), client.poll(NOW)), (Some(closed), None));
    }

    /// Fails if a later reason replaces the first, or if the closing end still receives messages.
    #[test]
    fn a_closed_client_gets_the_reason() {
        let (mut client, mut peer) = pair();
        client.send(message(b"cheat")).expect("there is room");
        peer.close(CloseReason::Kicked);
        let kicked = || Some(Arrival::Closed(CloseReason::Kicked));
        assert_eq!(peer.poll(NOW), kicked());
        drop(peer);
        assert_eq!(client.poll(NOW), kicked());
    }

    /// Fails if `put` or `close` does not wake the receiver, or if `sleep` does not check the queue
    /// first: then this hangs.
    #[test]
    fn an_arrival_wakes_a_sleeper() {
        let (mut client, peer) = pair();
        let (up, down) = std::sync::mpsc::channel();
        let sleeping = std::thread::spawn(move || {
            loop {
                client.sleep(Duration::MAX);
                match client.poll(NOW).expect("something is there") {
                    Arrival::Received(_) => up.send(()).expect("the test waits"),
                    Arrival::Closed(reason) => break reason,
                }
            }
        });
        for _ in 0..1000 {
            peer.send(message(b"wake up")).expect("there is room");
            down.recv().expect("it is awake");
        }
        drop(peer);
        let reason = sleeping.join().expect("no panic");
        assert_eq!(reason, CloseReason::ShuttingDown);
    }
}
