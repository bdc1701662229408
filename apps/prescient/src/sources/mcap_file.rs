//! MCAP files: what robotics records in.
//!
//! Every class is a topic. A message is one entity's whole row at a tick at which it changed, in CDR
//! with the narrowest integers that hold the field's values in this recording, described by a
//! `ros2msg` schema, so that other tools show the values. The topic `/prescient/tick` begins every
//! tick, `/prescient/despawned` ends entities, and the trace's header is in the metadata.

use std::collections::BTreeMap;
use std::io::{Seek, Write};
use std::path::Path;

use mcap::records::{MessageHeader, Metadata};
use mcap::{Compression, McapError, MessageStream, Summary, WriteOptions, Writer};
use prescient_sim::trace::{ClassHeader, FieldType, Header};
use prescient_sim::world::{Change, Source, SourceError, Spawn, TickUpdate, World};

use super::{other, read_file};

/// Writes all ticks with zstd-compressed chunks.
pub(crate) fn write_mcap(
    header: &Header,
    ticks: &[TickUpdate],
    output: impl Write + Seek,
) -> Result<(), McapError> {
    let widths = widths(header, ticks);
    let options = WriteOptions::new()
        .compression(Some(Compression::Zstd))
        .profile("");
    let mut writer = options.create(output)?;
    let metadata = Metadata {
        name: METADATA.into(),
        metadata: BTreeMap::from([("header".into(), header.to_line())]),
    };
    writer.write_metadata(&metadata)?;
    let tick_topic = topic(&mut writer, "/prescient/tick", "uint64 tick\n")?;
    let despawn_topic = topic(&mut writer, "/prescient/despawned", "uint64 entity_id\n")?;
    let mut topics = Vec::new();
    for (class, widths) in header.classes.iter().zip(&widths) {
        let name = format!("/{}", class.name);
        topics.push(topic(
            &mut writer,
            &name,
            &message_definition(class, widths),
        )?);
    }
    let hz = header.tick_hz.unwrap_or(1.0);
    let mut world = World::default();
    let mut sequence = 0;
    for update in ticks {
        let time = (update.tick as f64 * 1e9 / hz) as u64;
        let mut write = |channel_id, data: &[u8]| {
            sequence += 1;
            let header = MessageHeader {
                channel_id,
                sequence,
                log_time: time,
                publish_time: time,
            };
            writer.write_to_known_channel(&header, data)
        };
        write(tick_topic, &Cdr::new(update.tick).0)?;
        let changes = world.apply(update.clone());
        for &id in &changes.despawned {
            write(despawn_topic, &Cdr::new(id).0)?;
        }
        for &id in changes.spawned.iter().chain(&changes.changed) {
            let Some(entity) = world.get(id) else {
                continue;
            };
            let class = usize::from(entity.class);
            let mut cdr = Cdr::new(id);
            for (&value, &width) in entity.row.iter().zip(&widths[class]) {
                cdr.put(value, width);
            }
            write(topics[class], &cdr.0)?;
        }
    }
    writer.finish()?;
    Ok(())
}

fn topic(
    writer: &mut Writer<impl Write + Seek>,
    name: &str,
    definition: &str,
) -> Result<u16, McapError> {
    let schema = format!("prescient/{}", name.trim_matches('/').replace('/', "_"));
    let schema = writer.add_schema(&schema, "ros2msg", definition.as_bytes())?;
    writer.add_channel(schema, name, "cdr", &BTreeMap::new())
}

fn message_definition(class: &ClassHeader, widths: &[Width]) -> String {
    let mut text = String::from("uint64 entity_id\n");
    let mut names: Vec<String> = vec!["entity_id".into()];
    for (field, width) in class.fields.iter().zip(widths) {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        };
        let mut name: String = field.name.chars().map(plain).collect();
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            name.insert(0, 'f');
        }
        while names.contains(&name) {
            name.push('x');
        }
        let kind = match (field.kind, width) {
            (FieldType::Bool, Width::I8) => "bool",
            (_, Width::I8) => "int8",
            (_, Width::I16) => "int16",
            (_, Width::I32) => "int32",
            (_, Width::I64) => "int64",
        };
        text.push_str(&format!("{kind} {name}\n"));
        names.push(name);
    }
    text
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    I8 = 1,
    I16 = 2,
    I32 = 4,
    I64 = 8,
}

impl Width {
    fn of(value: i64) -> Self {
        match value {
            -0x80..=0x7F => Self::I8,
            -0x8000..=0x7FFF => Self::I16,
            -0x8000_0000..=0x7FFF_FFFF => Self::I32,
            _ => Self::I64,
        }
    }
}

/// The narrowest integers that hold all values of each field.
fn widths(header: &Header, ticks: &[TickUpdate]) -> Vec<Vec<Width>> {
    let fields = header.classes.iter().map(|class| class.fields.len());
    let mut widths: Vec<Vec<Width>> = fields.map(|count| vec![Width::I8; count]).collect();
    let mut classes = BTreeMap::new();
    for update in ticks {
        for spawn in &update.spawns {
            classes.insert(spawn.id, usize::from(spawn.class));
            for (width, &value) in widths[usize::from(spawn.class)].iter_mut().zip(&spawn.row) {
                *width = Width::of(value).max(*width);
            }
        }
        for change in &update.changes {
            let Some(&class) = classes.get(&change.id) else {
                continue;
            };
            for &(field, value) in &change.values {
                let width = &mut widths[class][usize::from(field)];
                *width = Width::of(value).max(*width);
            }
        }
    }
    widths
}

/// A message in little-endian CDR, which begins with an id.
struct Cdr(Vec<u8>);

impl Cdr {
    fn new(id: u64) -> Self {
        let mut bytes = vec![0, 1, 0, 0];
        bytes.extend(id.to_le_bytes());
        Self(bytes)
    }

    fn put(&mut self, value: i64, width: Width) {
        let len = width as usize;
        let begin = (self.0.len() - CDR_HEADER).next_multiple_of(len) + CDR_HEADER;
        self.0.resize(begin, 0);
        self.0.extend(&value.to_le_bytes()[..len]);
    }
}

/// Reads what [`Cdr`] wrote.
struct CdrReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> CdrReader<'a> {
    fn new(bytes: &'a [u8]) -> Option<(u64, Self)> {
        let id = bytes.get(CDR_HEADER..CDR_HEADER + 8)?;
        let id = u64::from_le_bytes(id.try_into().ok()?);
        let at = CDR_HEADER + 8;
        Some((id, Self { bytes, at }))
    }

    fn take(&mut self, width: Width) -> Option<i64> {
        let len = width as usize;
        let begin = (self.at - CDR_HEADER).next_multiple_of(len) + CDR_HEADER;
        let bytes = self.bytes.get(begin..begin + len)?;
        self.at = begin + len;
        let mut value = [0; 8];
        value[..len].copy_from_slice(bytes);
        let unused = 64 - 8 * len as u32;
        Some(i64::from_le_bytes(value) << unused >> unused)
    }
}

const CDR_HEADER: usize = 4;
const METADATA: &str = "prescient";

/// Why a file is not an MCAP file that this program wrote.
#[derive(Debug, thiserror::Error)]
enum McapFileError {
    #[error(transparent)]
    Mcap(#[from] McapError),
    #[error("the file has no metadata of prescient: it was recorded by another program")]
    Foreign,
    #[error("a message does not match the schema of its topic")]
    Message,
}

/// The ticks of a file that [`write_mcap`] wrote.
pub(super) struct McapSource {
    header: Header,
    ticks: std::vec::IntoIter<TickUpdate>,
}

impl McapSource {
    pub(super) fn open(path: &Path) -> Result<Self, SourceError> {
        let bytes = read_file(path)?;
        read(&bytes).map_err(|error| other(path, error))
    }
}

impl Source for McapSource {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_tick(&mut self) -> Result<Option<TickUpdate>, SourceError> {
        Ok(self.ticks.next())
    }
}

fn read(bytes: &[u8]) -> Result<McapSource, McapFileError> {
    let summary = Summary::read(bytes)?.ok_or(McapFileError::Foreign)?;
    let mut indexes = summary.metadata_indexes.iter();
    let index = indexes.find(|index| index.name == METADATA);
    let metadata = mcap::read::metadata(bytes, index.ok_or(McapFileError::Foreign)?)?;
    let line = metadata.metadata.get("header");
    let header = line.and_then(|line| Header::parse(line).ok());
    let header = header.ok_or(McapFileError::Foreign)?;
    let mut ticks: Vec<TickUpdate> = Vec::new();
    let mut alive: BTreeMap<u64, (u16, Vec<i64>)> = BTreeMap::new();
    // The class of each topic, and the widths of its fields.
    let mut topics: BTreeMap<String, (u16, Vec<Width>)> = BTreeMap::new();
    for message in MessageStream::new(bytes)? {
        let message = message?;
        let (id, mut row) = CdrReader::new(&message.data).ok_or(McapFileError::Message)?;
        if message.channel.topic == "/prescient/tick" {
            ticks.push(TickUpdate::at(id));
            continue;
        }
        let update = ticks.last_mut().ok_or(McapFileError::Message)?;
        if message.channel.topic == "/prescient/despawned" {
            alive.remove(&id).ok_or(McapFileError::Message)?;
            update.despawns.push(id);
            continue;
        }
        if !topics.contains_key(&message.channel.topic) {
            let name = message.channel.topic.trim_start_matches('/');
            let class = header.classes.iter().position(|class| class.name == name);
            let schema = message.channel.schema.as_ref();
            let widths = schema.and_then(|schema| field_widths(&schema.data));
            let (class, widths) = class.zip(widths).ok_or(McapFileError::Message)?;
            topics.insert(message.channel.topic.clone(), (class as u16, widths));
        }
        let (class, widths) = &topics[&message.channel.topic];
        let values = widths.iter().map(|&width| row.take(width));
        let values: Option<Vec<i64>> = values.collect();
        let values = values.ok_or(McapFileError::Message)?;
        match alive.insert(id, (*class, values.clone())) {
            None => update.spawns.push(Spawn {
                id,
                class: *class,
                row: values,
            }),
            Some((_, old)) => {
                let pairs = (0..).zip(values.iter().zip(&old));
                let changed = pairs.filter(|(_, (new, old))| new != old);
                let values = changed.map(|(at, (&new, _))| (at, new)).collect();
                update.changes.push(Change { id, values });
            }
        }
    }
    Ok(McapSource {
        header,
        ticks: ticks.into_iter(),
    })
}

/// The widths of all fields after the id in a message definition.
fn field_widths(definition: &[u8]) -> Option<Vec<Width>> {
    let text = std::str::from_utf8(definition).ok()?;
    let width = |line: &str| match line.split_once(' ')?.0 {
        "bool" | "int8" => Some(Width::I8),
        "int16" => Some(Width::I16),
        "int32" => Some(Width::I32),
        "int64" => Some(Width::I64),
        _ => None,
    };
    text.lines().skip(1).map(width).collect()
}
