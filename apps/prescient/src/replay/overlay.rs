//! A page that plays a recording, or overlays a server's and a client's: positions side by side, and
//! their distance over time.

use std::collections::BTreeMap;
use std::path::Path;

use prescient_recording::Player;
use serde_json::{Value, json};

use super::terminal::{plane, value};
use super::{ReplayError, ReplayOptions};
use crate::sources::open_recording;

/// The page as HTML.
pub(super) fn page(options: &ReplayOptions) -> Result<String, ReplayError> {
    let first = layer(&options.file, options)?;
    let second = match &options.other {
        Some(path) => layer(path, options)?,
        None => Value::Null,
    };
    let data = json!({"first": first, "second": second}).to_string();
    // Names in the data must not end the script.
    let data = data.replace("</", "<\\/").replace("<!--", "<\\!--");
    Ok(PAGE.replace("/*DATA*/null", &data))
}

/// The changed positions of every tick: `[tick, [[key, x, y], …], [removed keys]]`.
fn layer(path: &Path, options: &ReplayOptions) -> Result<Value, ReplayError> {
    let recording = open_recording(path)?;
    let schema = recording.info().schema.clone();
    let seconds = recording.info().tick_interval.as_secs_f64();
    let mut player = Player::new(recording);
    let mut before: BTreeMap<i64, [f64; 2]> = BTreeMap::new();
    let mut frames = Vec::new();
    while let Some(tick) = player.step_forward()? {
        let mut now = BTreeMap::new();
        for (id, entity) in player.entities() {
            let class = &schema.classes[usize::from(entity.class)];
            let [x, y] = plane(class)[..] else { continue };
            let key = match &options.key {
                None => Some(id.0 as i64),
                Some(key) => {
                    let at = class.fields.iter().position(|field| field.name == *key);
                    at.map(|at| entity.row[at])
                }
            };
            if let Some(key) = key {
                now.insert(key, [x, y].map(|field| value(class, field, entity)));
            }
        }
        let moved = now.iter().filter(|&(key, at)| before.get(key) != Some(at));
        let moved: Vec<Value> = moved.map(|(key, [x, y])| json!([key, x, y])).collect();
        let gone: Vec<i64> = before
            .keys()
            .filter(|key| !now.contains_key(key))
            .copied()
            .collect();
        frames.push(json!([tick, moved, gone]));
        before = now;
    }
    let name = path.display().to_string();
    let has_any = frames
        .iter()
        .any(|frame| frame[1].as_array().is_some_and(|moved| !moved.is_empty()));
    if !has_any {
        return Err(ReplayError::NoPosition(name));
    }
    Ok(json!({"name": name, "seconds": seconds, "frames": frames}))
}

const PAGE: &str = include_str!("overlay.html");
