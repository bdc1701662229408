//! Prints a few real packets byte by byte, with the meaning and cost of each part.
//!
//! `book/src/internals/codec.md` shows this output as its worked packet. The header is parsed here
//! from the bytes alone, as WIRE.md describes them; the costs of the body are the codec's own ledger.

use std::{error::Error, sync::Arc};

use prescient_codec::{Config, Decoder, Encoder, HISTORY, Slot, Tick, history::Archive};
use prescient_schema::{Class, Field, FieldKind, Schema};

fn main() -> Result<(), Box<dyn Error>> {
    let schema = schema();
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), Config::default());
    let mut decoder = Decoder::new(schema.clone(), Config::default());
    let mut balls: Vec<Slot> = Vec::new();
    for tick in 1..=12 {
        let mut capture = archive.begin(Tick(tick))?;
        if tick == 1 {
            balls.push(capture.spawn(0, &ball(0, tick))?);
            balls.push(capture.spawn(0, &ball(1, tick))?);
        }
        for (number, &slot) in balls.iter().enumerate() {
            capture.write(slot, &ball(number, tick))?;
        }
        capture.finish();
        if tick == 1 {
            for &slot in &balls {
                encoder.show(slot, &archive);
            }
        }
        encoder.keep_ledger(true);
        let packet = encoder.encode(&archive, None)?;
        let applied = decoder.decode(&packet.bytes)?;
        if let Some(ack) = decoder.acknowledgement() {
            encoder.acknowledge(&ack, &archive)?;
        }
        if let Some((_, story)) = STORY.iter().find(|(told, _)| *told == tick) {
            println!("tick {tick}: {story}");
            println!("  {} bytes: {}", packet.bytes.len(), hex(&packet.bytes));
            print_header(&packet.bytes);
            print_costs(&encoder, &schema);
            println!("  applied as packet {}\n", applied.sequence.0);
        }
    }
    Ok(())
}

/// The ticks that are printed, with a description.
const STORY: [(u64, &str); 6] = [
    (1, "two balls appear"),
    (8, "both roll on as expected"),
    (9, "ball 1 bounces off a wall"),
    (10, "it rolls back"),
    (11, "it rolls on, but the line is not trusted yet"),
    (12, "both roll on as expected again"),
];

fn schema() -> Arc<Schema> {
    let metre = |name| {
        let kind = FieldKind::Int {
            bits: 16,
            signed: true,
        };
        Field::new(name, kind)
    };
    let fields = vec![metre("x"), metre("y"), Field::new("lit", FieldKind::Bool)];
    Arc::new(Schema {
        classes: vec![Class::new("ball", fields)],
    })
}

fn ball(number: usize, tick: u64) -> [i64; 3] {
    let tick = tick as i64;
    match number {
        0 => [100 + 7 * tick, 40, 0],
        // The wall is at 285.
        _ => [285 - (285 - (200 + 10 * tick)).abs(), 60, 1],
    }
}

/// Long headers of small ticks, and headers of one byte: the others do not occur here.
fn print_header(bytes: &[u8]) {
    let body = if bytes[0] & 0x80 == 0 {
        println!(
            "  {}  packet {} mod 128, with as old a model as the one before it",
            hex(&bytes[..1]),
            bytes[0]
        );
        1
    } else {
        println!("  {}  long header, full", hex(&bytes[..1]));
        println!("  {}  epoch {}", hex(&bytes[1..2]), bytes[1]);
        let sequence = [bytes[2], bytes[3], bytes[4], bytes[5]];
        println!(
            "  {}  packet {}",
            hex(&sequence),
            u32::from_le_bytes(sequence)
        );
        println!("  {}  tick {}", hex(&bytes[6..7]), bytes[6]);
        7
    };
    println!("  {}  check", hex(&bytes[body..body + 2]));
    println!("  {}  body", hex(&bytes[body + 2..]));
}

fn print_costs(encoder: &Encoder, schema: &Schema) {
    let Some(ledger) = encoder.ledger() else {
        return;
    };
    for (account, cost) in ledger.entries() {
        let class = account.class.map(|at| &schema.classes[usize::from(at)]);
        let field = class.zip(account.field);
        let place = match (class, field) {
            (_, Some((class, field))) => {
                format!("{}.{}", class.name, class.fields[usize::from(field)].name)
            }
            (Some(class), None) => class.name.clone(),
            (None, None) => "packet".into(),
        };
        let bits = cost as f64 / 65536.0;
        println!("    {:<8} {place:<9} {bits:7.2} bits", account.cause.name());
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}
