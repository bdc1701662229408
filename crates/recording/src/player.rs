//! Shows ticks of a recording.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prescient_schema::{Content, Library, State};

use crate::RecordedId;
use crate::recording::Recording;
use crate::track::{PlayError, Track};

/// An entity as it was at a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEntity {
    /// Index into the schema's classes.
    pub class: u16,
    /// One value per field. References are the [`RecordedId`] of their target, or 0.
    pub row: Vec<i64>,
}

/// The entities of a tick.
pub(crate) type Entities = BTreeMap<RecordedId, RecordedEntity>;

/// Shows one tick of a recording at a time.
///
/// A stretch between two snapshots is decoded when it is first shown, up to the tick that is shown,
/// and then kept ([`held_bytes`](Self::held_bytes)) until [`unload`](Self::unload).
pub struct Player {
    recording: Arc<Recording>,
    /// The decoded segments.
    tracks: BTreeMap<usize, Track>,
    /// The shown segment, and how many of its ticks were applied to `entities`.
    segment: usize,
    applied: usize,
    entities: Entities,
    /// The time of [`play`](Self::play), which may lie between two ticks.
    time: Duration,
}

impl Player {
    /// A player that shows nothing yet.
    pub fn new(recording: Arc<Recording>) -> Self {
        Self {
            recording,
            tracks: BTreeMap::new(),
            segment: 0,
            applied: 0,
            entities: Entities::new(),
            time: Duration::ZERO,
        }
    }

    /// The recording.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// The tick that is shown; `None` before the first seek or step.
    pub fn tick(&self) -> Option<u64> {
        let at = self.applied.checked_sub(1)?;
        self.tracks.get(&self.segment)?.ticks().get(at).copied()
    }

    /// Shows a tick, or the last one before it, or else the first of the recording. Returns which.
    pub fn seek(&mut self, tick: u64) -> Result<u64, PlayError> {
        let shown = self.show(tick)?;
        self.time = self.recording.time_of(shown);
        Ok(shown)
    }

    /// Shows the tick at a time since the first.
    pub fn seek_time(&mut self, time: Duration) -> Result<u64, PlayError> {
        let shown = self.show(self.recording.tick_at(time))?;
        self.time = time.min(self.recording.duration());
        Ok(shown)
    }

    /// Shows the next tick; `None` at the end.
    pub fn step_forward(&mut self) -> Result<Option<u64>, PlayError> {
        let Some(tick) = self.tick() else {
            return self.seek(0).map(Some);
        };
        let recording = self.recording.clone();
        let segment = &recording.segments()[self.segment];
        let track = track(&mut self.tracks, self.segment, &recording);
        track.decode_to(tick.saturating_add(1), &recording, segment)?;
        if let Some(&next) = track.ticks().get(self.applied) {
            track.forward(self.applied, &mut self.entities);
            self.applied += 1;
            self.time = recording.time_of(next);
            return Ok(Some(next));
        }
        match recording.segments().get(self.segment + 1) {
            Some(next) => self.seek(next.first).map(Some),
            None => Ok(None),
        }
    }

    /// Shows the tick before; `None` at the beginning.
    pub fn step_back(&mut self) -> Result<Option<u64>, PlayError> {
        let Some(tick) = self.tick() else {
            return Ok(None);
        };
        let is_first = self
            .recording
            .tick_range()
            .is_some_and(|(first, _)| first >= tick);
        match is_first {
            true => Ok(None),
            false => self.seek(tick - 1).map(Some),
        }
    }

    /// Plays for a while of real time at a speed: 1 as it was, 0.5 half as fast, negative backwards.
    /// Stops at the first and at the last tick. Returns the tick that is shown then.
    pub fn play(&mut self, elapsed: Duration, speed: f64) -> Result<u64, PlayError> {
        let seconds = self.time.as_secs_f64() + elapsed.as_secs_f64() * speed;
        let end = self.recording.duration();
        let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(end);
        self.seek_time(time)
    }

    /// The time that is shown since the first tick.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The entities of the shown tick, ascending.
    pub fn entities(&self) -> impl ExactSizeIterator<Item = (RecordedId, &RecordedEntity)> {
        self.entities.iter().map(|(&id, entity)| (id, entity))
    }

    /// An entity of the shown tick.
    pub fn entity(&self, id: RecordedId) -> Option<&RecordedEntity> {
        self.entities.get(&id)
    }

    /// The class name of an entity of the shown tick.
    pub fn class_name(&self, id: RecordedId) -> Option<&str> {
        let class = self.entities.get(&id)?.class;
        let classes = &self.recording.info().schema.classes;
        classes.get(usize::from(class)).map(|class| &class.name[..])
    }

    /// The content of a container of the shown tick.
    pub fn content(&self, cell: i64) -> Option<&Content> {
        self.tracks.get(&self.segment)?.content(cell)
    }

    /// An entity's value in its first table, for programs that have the type; `None` if it has
    /// another type or is not there.
    pub fn get<T: State>(&self, id: RecordedId) -> Option<T> {
        let table = T::TABLES.first()?;
        if self.class_name(id)? != T::NAME {
            return None;
        }
        let row = &self.entities.get(&id)?.row;
        T::from_row_in(table, row, self).ok()
    }

    /// Decodes the whole recording, so that no later seek has to. `progress` gets the number of
    /// decoded ticks.
    pub fn load_all(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), PlayError> {
        let recording = self.recording.clone();
        let mut ticks = 0;
        for (number, segment) in recording.segments().iter().enumerate() {
            let track = track(&mut self.tracks, number, &recording);
            track.decode_to(u64::MAX, &recording, segment)?;
            ticks += segment.ticks;
            progress(ticks);
        }
        Ok(())
    }

    /// Decodes at most this many further ticks, after those that are shown first, and does not change what is
    /// shown. Returns false if everything is decoded already. Called in every frame, it makes all seeks fast
    /// after a while, and none of the frames slow.
    pub fn load_some(&mut self, ticks: u64) -> bool {
        let recording = self.recording.clone();
        let segments = recording.segments();
        for number in (self.segment..segments.len()).chain(0..self.segment) {
            let track = track(&mut self.tracks, number, &recording);
            if track.is_complete() {
                continue;
            }
            let segment = &segments[number];
            let tick = match track.ticks().last() {
                Some(last) => last.saturating_add(ticks),
                None => segment.first.saturating_add(ticks.saturating_sub(1)),
            };
            // What cannot be decoded is an error when it is to be shown.
            let _ = track.decode_to(tick, &recording, segment);
            return true;
        }
        false
    }

    /// Bytes of what was decoded.
    pub fn held_bytes(&self) -> usize {
        self.tracks.values().map(Track::bytes).sum()
    }

    /// Drops all decoded segments but the shown one.
    pub fn unload(&mut self) {
        let shown = self.segment;
        self.tracks.retain(|&segment, _| segment == shown);
    }

    fn show(&mut self, tick: u64) -> Result<u64, PlayError> {
        let recording = self.recording.clone();
        let segments = recording.segments();
        let after = segments.partition_point(|segment| segment.first <= tick);
        let number = after.saturating_sub(1);
        let segment = segments.get(number).ok_or(PlayError::Empty)?;
        let tick = tick.max(segment.first);
        if number != self.segment {
            (self.segment, self.applied) = (number, 0);
            self.entities.clear();
        }
        let track = track(&mut self.tracks, number, &recording);
        let decoded = track.decode_to(tick, &recording, segment);
        let wanted = track.ticks().partition_point(|&other| other <= tick);
        while self.applied < wanted {
            track.forward(self.applied, &mut self.entities);
            self.applied += 1;
        }
        while self.applied > wanted.max(1) {
            self.applied -= 1;
            track.back(self.applied, &mut self.entities);
        }
        decoded?;
        self.tick().ok_or(PlayError::Empty)
    }
}

impl Library for Player {
    fn content(&self, cell: i64) -> Option<&Content> {
        Player::content(self, cell)
    }
}

fn track<'a>(
    tracks: &'a mut BTreeMap<usize, Track>,
    segment: usize,
    recording: &Recording,
) -> &'a mut Track {
    tracks
        .entry(segment)
        .or_insert_with(|| Track::new(recording))
}
