//! A forwarder on sockets, on its own thread.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test uses a part of it, as a module of its own"
)]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use prescient_named::{AppFace, Daemon, Data, DataBuilder, Interest, LinkPacket, Name, Signer};

/// The longest wait for a condition.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Station {
    jobs: Option<Sender<Job>>,
    waker: Arc<mio::Waker>,
    thread: Option<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce(&mut Daemon) + Send>;

impl Station {
    pub fn start(mut daemon: Daemon) -> Self {
        let waker = daemon.waker();
        let (jobs, inbox): (_, Receiver<Job>) = channel();
        let thread = std::thread::spawn(move || {
            loop {
                daemon.poll(Duration::from_secs(1)).expect("waiting works");
                loop {
                    match inbox.try_recv() {
                        Ok(job) => job(&mut daemon),
                        Err(std::sync::mpsc::TryRecvError::Empty) => break,
                        Err(std::sync::mpsc::TryRecvError::Disconnected) => return,
                    }
                }
            }
        });
        Self {
            jobs: Some(jobs),
            waker,
            thread: Some(thread),
        }
    }

    /// Calls a function with the daemon, between two polls.
    pub fn with<R: Send + 'static>(
        &self,
        use_it: impl FnOnce(&mut Daemon) -> R + Send + 'static,
    ) -> R {
        let (answer, result) = channel();
        let job: Job = Box::new(move |daemon| {
            let _ = answer.send(use_it(daemon));
        });
        let jobs = self.jobs.as_ref().expect("it runs");
        jobs.send(job).expect("it runs");
        self.waker.wake().expect("it runs");
        result.recv_timeout(PATIENCE).expect("an answer in time")
    }

    /// Waits until a condition is true.
    #[expect(
        clippy::disallowed_methods,
        reason = "the daemon runs on the system's clock"
    )]
    pub fn until(&self, holds: impl FnMut(&mut Daemon) -> bool + Clone + Send + 'static) {
        let begun = Instant::now();
        loop {
            let mut holds = holds.clone();
            if self.with(move |daemon| holds(daemon)) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "it never came about");
            std::thread::yield_now();
        }
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.jobs = None;
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("the daemon does not panic");
            }
        }
    }
}

/// Waits for the next Interest and returns its name.
pub fn next_interest(face: &mut AppFace) -> Name {
    loop {
        let packet = face.receive(PATIENCE).expect("the face is up");
        let packet = packet.expect("an Interest in time");
        let came = LinkPacket::decode(&packet).expect("a packet");
        if let Ok(interest) = Interest::decode(came.packet) {
            return interest.name().to_name();
        }
    }
}

pub fn put(face: &mut AppFace, name: &Name, content: &[u8], freshness: Duration) {
    let mut packet = Vec::new();
    DataBuilder::new(name.view())
        .content(content)
        .freshness(freshness)
        .sign(&Signer::digest(), &mut packet)
        .expect("it fits");
    face.send(&packet).expect("the face is up");
}

pub fn content(packet: &[u8]) -> Vec<u8> {
    Data::decode(packet).expect("Data").content().to_vec()
}
