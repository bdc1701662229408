//! The codec's end of a stream of keyframes.

use std::collections::BTreeMap;
use std::sync::Arc;

use prescient_codec::history::Archive;
use prescient_codec::{Encoder, HISTORY, Layout, Slot, Tick};

use super::steps::{Row, SteppedKeyframe};

/// An archive with one entity per property, and its encoder.
pub(super) struct Coder {
    layout: Arc<Layout>,
    archive: Archive,
    encoder: Encoder,
    slots: BTreeMap<u32, (Slot, Vec<i64>)>,
}

impl Coder {
    pub(super) fn new(layout: Arc<Layout>) -> Self {
        Self {
            archive: Archive::new(layout.schema().clone(), HISTORY),
            encoder: Encoder::with_layout(layout.clone(), Row::config()),
            layout,
            slots: BTreeMap::new(),
        }
    }

    pub(super) fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    /// A packet with these keyframes, each of another property.
    pub(super) fn encode(&mut self, base_time: i64, adds: &[(u32, &SteppedKeyframe)]) -> Vec<u8> {
        let next = self.archive.newest().map_or(1, |tick| tick.0 + 1);
        let mut shown = Vec::new();
        // Rows within the ranges of their fields, and increasing ticks, are not refused.
        if let Ok(mut capture) = self.archive.begin(Tick(next)) {
            for &(property, keyframe) in adds {
                let known = self.slots.get(&property);
                let is_odd = known.is_none_or(|(_, row)| row[Row::IS_ODD] == 0);
                let mut row = vec![0; Row::VALUE];
                row[Row::PROPERTY] = i64::from(property);
                row[Row::IS_ODD] = i64::from(is_odd);
                row[Row::TIME] = keyframe.time.wrapping_sub(base_time);
                row[Row::INTERPOLATION] = keyframe.interpolation;
                row.extend_from_slice(&keyframe.value);
                let slot = match known {
                    Some(&(slot, _)) => capture.write(slot, &row).ok().map(|()| slot),
                    None => capture
                        .spawn(0, &row)
                        .ok()
                        .inspect(|&slot| shown.push(slot)),
                };
                if let Some(slot) = slot {
                    self.slots.insert(property, (slot, row));
                }
            }
            capture.finish();
        }
        for slot in shown {
            self.encoder.show(slot, &self.archive);
        }
        let packet = self.encoder.encode(&self.archive, None);
        packet.map_or_else(|_| Vec::new(), |packet| packet.bytes)
    }
}
