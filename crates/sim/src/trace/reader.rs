//! Reads a trace tick by tick, holding only one tick and the set of living ids.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead, BufReader, Read},
    sync::Arc,
};

use prescient_schema::{FieldKind, Schema};

use super::{Header, ID_REST_TICKS, LineError, TraceError};
use crate::world::{Change, Spawn, TickUpdate};

/// A stream of ticks from a compressed trace.
pub struct Reader<R: Read> {
    lines: BufReader<zstd::Decoder<'static, BufReader<R>>>,
    line: String,
    number: u64,
    header: Header,
    schema: Arc<Schema>,
    classes: BTreeMap<String, u16>,
    alive: BTreeMap<u64, u16>,
    /// Recently despawned ids with their ticks, oldest first.
    resting: VecDeque<(u64, u64)>,
    rests: BTreeMap<u64, u64>,
    next_tick: Option<u64>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub fn new(input: R) -> Result<Self, TraceError> {
        let decoder =
            zstd::Decoder::new(input).map_err(|error| TraceError::Io { line: 1, error })?;
        let mut lines = BufReader::with_capacity(1 << 16, decoder);
        let mut line = String::new();
        read_line(&mut lines, 1, &mut line)?;
        let header = Header::parse(&line)?;
        let schema = Arc::new(header.schema()?);
        let names = schema.classes.iter().enumerate();
        let classes = names
            .map(|(index, class)| (class.name.clone(), index as u16))
            .collect();
        Ok(Self {
            lines,
            line,
            number: 1,
            header,
            schema,
            classes,
            alive: BTreeMap::new(),
            resting: VecDeque::new(),
            rests: BTreeMap::new(),
            next_tick: None,
        })
    }

    /// Line 1.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The schema of line 1.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The next tick, or `None` at the end of the trace.
    pub fn next_tick(&mut self) -> Result<Option<TickUpdate>, TraceError> {
        let mut update = TickUpdate::default();
        let mut started = self
            .next_tick
            .take()
            .inspect(|&tick| self.start(tick, &mut update));
        loop {
            self.line.clear();
            self.number += 1;
            if read_line(&mut self.lines, self.number, &mut self.line)? == 0 {
                return Ok(started.map(|_| update));
            }
            let line = std::mem::take(&mut self.line);
            let parsed = self.parse(line.trim_end(), started, &mut update);
            self.line = line;
            match parsed.map_err(|reason| TraceError::Line {
                line: self.number,
                reason,
            })? {
                Some(tick) if started.is_some() => {
                    self.next_tick = Some(tick);
                    return Ok(Some(update));
                }
                Some(tick) => {
                    self.start(tick, &mut update);
                    started = Some(tick);
                }
                None => {}
            }
        }
    }

    fn start(&mut self, tick: u64, update: &mut TickUpdate) {
        update.tick = tick;
        while let Some(&(left, id)) = self.resting.front() {
            if tick.saturating_sub(left) < ID_REST_TICKS {
                break;
            }
            self.resting.pop_front();
            self.rests.remove(&id);
        }
    }

    /// Adds one line to `update`; for a `T` line returns its tick instead.
    fn parse(
        &mut self,
        line: &str,
        started: Option<u64>,
        update: &mut TickUpdate,
    ) -> Result<Option<u64>, LineError> {
        let mut words = line.split_ascii_whitespace();
        let sign = words.next().ok_or(LineError::Unknown)?;
        if sign == "T" {
            let tick = unsigned("the tick", words.next())?;
            end(words)?;
            return match started {
                Some(previous) if tick <= previous => Err(LineError::TickOrder { tick, previous }),
                _ => Ok(Some(tick)),
            };
        }
        if !matches!(sign, "+" | "=" | "-") {
            return Err(LineError::Unknown);
        }
        if started.is_none() {
            return Err(LineError::BeforeFirstTick);
        }
        let id = unsigned("the entity id", words.next())?;
        match sign {
            "+" => update.spawns.push(self.spawn(id, words)?),
            "=" => update.changes.push(self.change(id, words)?),
            _ => {
                end(words)?;
                self.alive.remove(&id).ok_or(LineError::NotAlive(id))?;
                self.resting.push_back((update.tick, id));
                self.rests.insert(id, update.tick);
                update.despawns.push(id);
            }
        }
        Ok(None)
    }

    fn spawn<'a>(
        &mut self,
        id: u64,
        mut words: impl Iterator<Item = &'a str>,
    ) -> Result<Spawn, LineError> {
        let name = words.next().ok_or(LineError::Missing("the class"))?;
        let class = *self
            .classes
            .get(name)
            .ok_or_else(|| LineError::UnknownClass(name.to_owned()))?;
        if let Some(&left) = self.rests.get(&id) {
            return Err(LineError::ReusedTooSoon { id, left });
        }
        let fields = &self.schema.classes[usize::from(class)].fields;
        let row = words
            .map(|word| signed("a value", word))
            .collect::<Result<Vec<_>, _>>()?;
        if row.len() != fields.len() {
            let (expected, got) = (fields.len(), row.len());
            return Err(LineError::ValueCount {
                class: name.to_owned(),
                expected,
                got,
            });
        }
        for (field, &value) in fields.iter().zip(&row) {
            in_range(field, value)?;
        }
        if self.alive.insert(id, class).is_some() {
            return Err(LineError::AlreadyAlive(id));
        }
        Ok(Spawn { id, class, row })
    }

    fn change<'a>(
        &mut self,
        id: u64,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Change, LineError> {
        let class = *self.alive.get(&id).ok_or(LineError::NotAlive(id))?;
        let class = &self.schema.classes[usize::from(class)];
        let mut values = Vec::new();
        for word in words {
            let (field, value) = word.split_once(':').ok_or(LineError::Missing("a colon"))?;
            let number = unsigned("a field number", Some(field))?;
            let value = signed("a value", value)?;
            let field = usize::try_from(number)
                .ok()
                .and_then(|index| class.fields.get(index));
            let field = field.ok_or_else(|| LineError::NoSuchField {
                class: class.name.clone(),
                field: number,
            })?;
            in_range(field, value)?;
            values.push((number as u16, value));
        }
        if values.is_empty() {
            return Err(LineError::Missing("a changed field"));
        }
        Ok(Change { id, values })
    }
}

/// Reads a line and returns its length. The length is limited, because a few compressed bytes may
/// decompress into an endless line.
fn read_line(
    lines: &mut impl BufRead,
    number: u64,
    line: &mut String,
) -> Result<usize, TraceError> {
    let mut some = lines.take(MAX_LINE);
    let length = some.read_line(line).map_err(|error| TraceError::Io {
        line: number,
        error,
    })?;
    if length as u64 == MAX_LINE && !line.ends_with('\n') {
        return Err(TraceError::Line {
            line: number,
            reason: LineError::TooLong,
        });
    }
    Ok(length)
}

/// Maximum length of a line, in bytes.
const MAX_LINE: u64 = 1 << 24;

fn unsigned(what: &'static str, word: Option<&str>) -> Result<u64, LineError> {
    let word = word.ok_or(LineError::Missing(what))?;
    word.parse().map_err(|_| LineError::Number {
        what,
        text: word.to_owned(),
    })
}

fn signed(what: &'static str, word: &str) -> Result<i64, LineError> {
    word.parse().map_err(|_| LineError::Number {
        what,
        text: word.to_owned(),
    })
}

fn end<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<(), LineError> {
    words
        .next()
        .map_or(Ok(()), |word| Err(LineError::Trailing(word.to_owned())))
}

fn in_range(field: &prescient_schema::Field, value: i64) -> Result<(), LineError> {
    let fits = match field.kind {
        FieldKind::Enum { values } => (0..i64::from(values)).contains(&value),
        FieldKind::Bool => matches!(value, 0 | 1),
        _ => true,
    };
    if fits {
        Ok(())
    } else {
        Err(LineError::Range {
            field: field.name.clone(),
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"format":"trace/1","name":"n","tick_hz":30,"classes":[{"name":"car",
        "fields":[{"name":"x","type":"int"},{"name":"s","type":"enum","values":3},
        {"name":"b","type":"bool"}]}]}"#;

    fn read(body: &str) -> Result<Vec<TickUpdate>, TraceError> {
        let text = format!("{}\n{body}", HEADER.replace('\n', " "));
        let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
        let mut reader = Reader::new(packed.as_slice())?;
        let mut ticks = Vec::new();
        while let Some(tick) = reader.next_tick()? {
            ticks.push(tick);
        }
        Ok(ticks)
    }

    fn refused(body: &str) -> (u64, LineError) {
        match read(body) {
            Err(TraceError::Line { line, reason }) => (line, reason),
            other => panic!("expected a refused line, got {other:?}"),
        }
    }

    #[test]
    fn a_tick_without_change_is_still_a_tick() {
        let ticks = read("T 3\n+ 7 car -5 2 1\nT 4\nT 9\n= 7 0:9 1:0\n- 7\n").unwrap();
        assert_eq!(
            ticks.iter().map(|tick| tick.tick).collect::<Vec<_>>(),
            [3, 4, 9]
        );
        assert_eq!(ticks[0].spawns[0].row, [-5, 2, 1]);
        assert_eq!(
            ticks[1],
            TickUpdate {
                tick: 4,
                ..TickUpdate::default()
            }
        );
        assert_eq!(ticks[2].changes[0].values, [(0, 9), (1, 0)]);
        assert_eq!(ticks[2].despawns, [7]);
    }

    #[test]
    fn broken_lines_are_refused_with_number_and_reason() {
        use LineError::*;
        let class = || "car".to_owned();
        for (body, line, reason) in [
            ("T 1\n+ 1 bus 1 1 1", 3, UnknownClass("bus".into())),
            (
                "T 1\n+ 1 car 1 1",
                3,
                ValueCount {
                    class: class(),
                    expected: 3,
                    got: 2,
                },
            ),
            (
                "T 1\n+ 1 car 1 3 0",
                3,
                Range {
                    field: "s".into(),
                    value: 3,
                },
            ),
            (
                "T 1\n+ 1 car 1 1 2",
                3,
                Range {
                    field: "b".into(),
                    value: 2,
                },
            ),
            ("T 1\n+ 1 car 1 1 1\n+ 1 car 1 1 1", 4, AlreadyAlive(1)),
            ("T 1\n= 1 0:1", 3, NotAlive(1)),
            ("T 1\n- 1", 3, NotAlive(1)),
            (
                "T 1\n+ 1 car 1 1 1\nT 2\n= 1 3:1",
                5,
                NoSuchField {
                    class: class(),
                    field: 3,
                },
            ),
            (
                "T 1\n+ 1 car 1 1 1\nT 2\n= 1",
                5,
                Missing("a changed field"),
            ),
            ("T 1\n+ 1 car 1 1 1\nT 2\n= 1 0", 5, Missing("a colon")),
            (
                "T 5\nT 5",
                3,
                TickOrder {
                    tick: 5,
                    previous: 5,
                },
            ),
            (
                "T 5\nT 4",
                3,
                TickOrder {
                    tick: 4,
                    previous: 5,
                },
            ),
            ("- 1", 2, BeforeFirstTick),
            ("T 1\n? 1", 3, Unknown),
            ("T 1 2", 2, Trailing("2".into())),
            (
                "T 1\n+ 1 car 1 1 1\n- 1\nT 1000\n+ 1 car 1 1 1",
                6,
                ReusedTooSoon { id: 1, left: 1 },
            ),
            (
                "T x",
                2,
                Number {
                    what: "the tick",
                    text: "x".into(),
                },
            ),
        ] {
            assert_eq!(refused(body), (line, reason), "{body}");
        }
        assert!(read("T 1\n+ 1 car 1 1 1\n- 1\nT 1001\n+ 1 car 1 1 1").is_ok());
    }

    #[test]
    fn the_last_ticks_there_are_are_ticks() {
        let last = u64::MAX;
        let body = format!(
            "T {}\n+ 1 car 1 1 1\n- 1\nT {last}\n+ 2 car 1 1 1",
            last - 1
        );
        assert_eq!(read(&body).unwrap().len(), 2);
    }

    #[test]
    fn a_line_without_an_end_is_refused_and_not_held() {
        let endless = "9".repeat(MAX_LINE as usize);
        assert_eq!(refused(&format!("T {endless}")), (2, LineError::TooLong));
        let packed = zstd::encode_all(endless.as_bytes(), 1).unwrap();
        assert!(packed.len() < 2000);
        let refused = Reader::new(packed.as_slice()).map(|_| ());
        assert!(matches!(refused, Err(TraceError::Line { line: 1, .. })));
    }

    #[test]
    fn bytes_that_are_no_trace_are_an_error_and_not_a_panic() {
        assert!(Reader::new(&b"hello"[..]).is_err());
        let packed = zstd::encode_all(&b"{\"format\":\"trace/2\"}\n"[..], 1).unwrap();
        assert!(matches!(
            Reader::new(packed.as_slice()),
            Err(TraceError::Header(_))
        ));
        let cut = zstd::encode_all(HEADER.replace('\n', " ").as_bytes(), 1).unwrap();
        assert!(Reader::new(&cut[..cut.len() - 4]).is_err());
    }
}
