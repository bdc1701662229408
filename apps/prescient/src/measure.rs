//! `prescient measure`: replays worlds through methods and prints a table or JSON lines.

use std::io::Write;

use prescient_sim::{
    baseline::{METHODS, MethodOptions, build},
    harness::{LedgerRow, Measurement, RunOptions, run},
    world::open,
};
use serde_json::{Value, json};

use crate::{
    CommandError,
    options::MeasureOptions,
    progress::spinner,
    table::{Table, number},
};

/// Runs every method over every world.
pub(crate) fn measure(options: &MeasureOptions) -> Result<(), CommandError> {
    let run_options = options.run_options();
    let method_options = options.method_options()?;
    for trace in &options.traces {
        let mut table = measurement_table();
        let (mut without_ledger, mut below) = (Vec::new(), Vec::new());
        for method in &options.methods {
            let measured = measure_one(trace, method, &run_options, &method_options)?;
            let mut output = std::io::stdout().lock();
            if options.json {
                let mut object = to_json(trace, method, &run_options, &measured, options.ledger);
                if let Some(prior) = method_options.prior.as_ref().filter(|_| method == OURS) {
                    object["prior"] = json!(prior.fingerprint().to_string());
                }
                writeln!(output, "{object}")?;
            } else {
                table.row(table_row(method, &measured));
                below.extend(remarks(method, &measured));
                match &measured.ledger {
                    Some(rows) if options.ledger => {
                        print_ledger(method, rows, &measured, &mut output)?;
                    }
                    _ => without_ledger.push(method.as_str()),
                }
            }
        }
        if !options.json {
            let mut output = std::io::stdout().lock();
            writeln!(output, "{}", headline(trace, &run_options))?;
            table.print(&mut output)?;
            for remark in below {
                writeln!(output, "{remark}")?;
            }
            if options.ledger && !without_ledger.is_empty() {
                let methods = without_ledger.join(", ");
                writeln!(output, "bits by field are not counted by {methods}")?;
            }
            writeln!(output)?;
        }
    }
    Ok(())
}

/// `prescient compare`: two built-in worlds through every method.
pub(crate) fn compare() -> Result<(), CommandError> {
    println!(
        "Bytes per tick to keep a client's copy of a world up to date, by method; every packet is\n\
         decoded by an independent receiver and compared with the server's state. Methods marked\n\
         `stream` need a reliable stream.\n"
    );
    for (trace, about) in [
        (
            "world:particles?ticks=300",
            "1000 bouncing particles, 60 Hz",
        ),
        (
            "world:rts?ticks=300",
            "500 units, 24 Hz, a third of them walking",
        ),
    ] {
        let mut table = measurement_table();
        for method in METHODS {
            let options = RunOptions::default();
            let measured = measure_one(trace, method, &options, &MethodOptions::default())?;
            table.row(table_row(method, &measured));
        }
        let mut output = std::io::stdout().lock();
        writeln!(output, "{trace} ({about})")?;
        table.print(&mut output)?;
        writeln!(output)?;
    }
    println!("More: prescient measure --help");
    Ok(())
}

/// Runs one method over one world.
pub(crate) fn measure_one(
    trace: &str,
    method: &str,
    run_options: &RunOptions,
    method_options: &MethodOptions,
) -> Result<Measurement, CommandError> {
    let mut source = open(trace)?;
    let (mut sender, mut receiver) = build(method, method_options, source.schema()?)?;
    let name = source.header().name.clone();
    let bar = spinner(&name, method);
    let measured = run(
        source.as_mut(),
        sender.as_mut(),
        receiver.as_mut(),
        run_options,
        &mut |tick| {
            bar.set_position(tick);
        },
    );
    bar.finish_and_clear();
    measured.map_err(|error| CommandError::Run {
        name,
        method: method.to_owned(),
        error: Box::new(error),
    })
}

/// The one method that can start from a prior.
const OURS: &str = "prescient";

fn headline(trace: &str, options: &RunOptions) -> String {
    let mut line = format!("{trace}, RTT {} ticks", options.rtt_ticks);
    if options.loss > 0 {
        line += &format!(
            ", {} % loss, seed {}",
            f64::from(options.loss) / 1e4,
            options.seed
        );
    }
    if let Some(viewer) = options.viewer {
        line += &format!(", viewer {viewer}");
    }
    if let Some(budget) = options.budget {
        line += &format!(", at most {budget} bytes");
    }
    line
}

fn measurement_table() -> Table {
    Table::new(&[
        "method", "ticks", "mean B", "p50", "p99", "max", "enc µs", "dec µs", "model kB", "folded",
        "stale", "verified",
    ])
}

fn table_row(method: &str, measured: &Measurement) -> Vec<String> {
    let bytes = &measured.bytes;
    let mut notes = String::from("yes");
    if measured.reliable_stream_assumed {
        notes += ", stream";
    }
    if measured.budget_ignored {
        notes += ", budget ignored";
    }
    vec![
        method.to_owned(),
        bytes.len().to_string(),
        number(bytes.mean()),
        number(bytes.percentile(50)),
        number(bytes.percentile(99)),
        number(bytes.max()),
        number(measured.encode_us.mean()),
        number(measured.decode_us.mean()),
        number(Some(measured.model_bytes as f64 / 1e3)),
        number(measured.folded_share),
        measured
            .stalest_ticks
            .map_or("-".into(), |ticks| ticks.to_string()),
        notes,
    ]
}

/// What is said below the table.
fn remarks(method: &str, measured: &Measurement) -> Vec<String> {
    let counts = [
        (measured.oversize, "over the budget"),
        (
            measured.unusable,
            "unusable, as what they refer to was lost",
        ),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let remark = counts.map(|(count, what)| format!("{method}: {count} packets {what}"));
    remark.collect()
}

fn to_json(
    trace: &str,
    method: &str,
    options: &RunOptions,
    measured: &Measurement,
    ledger: bool,
) -> Value {
    let bytes = &measured.bytes;
    let loss = if measured.reliable_stream_assumed {
        0
    } else {
        options.loss
    };
    let name = std::path::Path::new(trace)
        .file_name()
        .and_then(|name| name.to_str());
    let mut object = json!({
        "trace": name.unwrap_or(trace),
        "method": method,
        "ticks": bytes.len(),
        "rtt_ticks": options.rtt_ticks,
        "loss": f64::from(loss) / 1e4,
        "bytes_per_tick": {
            "mean": bytes.mean(),
            "p50": bytes.percentile(50),
            "p99": bytes.percentile(99),
            "max": bytes.max(),
        },
        "encode_us_per_tick": measured.encode_us.mean(),
        "decode_us_per_tick": measured.decode_us.mean(),
        "model_bytes": measured.model_bytes,
        "folded_share": measured.folded_share,
        "stalest_ticks": measured.stalest_ticks,
        // A run that finds a difference ends with an error instead.
        "verified": true,
    });
    if measured.reliable_stream_assumed {
        object["reliable_stream_assumed"] = json!(true);
    }
    if measured.budget_ignored {
        object["budget_ignored"] = json!(true);
    }
    if measured.unusable > 0 {
        object["unusable_packets"] = json!(measured.unusable);
    }
    if measured.oversize > 0 {
        object["oversize_packets"] = json!(measured.oversize);
    }
    if let Some(rows) = measured.ledger.as_ref().filter(|_| ledger) {
        let rows = rows.iter().map(|row| {
            json!({"class": row.class, "field": row.field, "cause": row.cause, "bits": row.bits})
        });
        object["ledger"] = rows.collect();
    }
    object
}

fn print_ledger(
    method: &str,
    rows: &[LedgerRow],
    measured: &Measurement,
    output: &mut impl Write,
) -> Result<(), CommandError> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by(|a, b| b.bits.total_cmp(&a.bits));
    let mut table = Table::new(&["field", "cause", "bytes/tick"]);
    let ticks = measured.bytes.len() as f64;
    for row in rows.iter().filter(|row| row.bits > 0.0) {
        let place = [row.class.as_str(), row.field.as_str()].join(".");
        let bytes = format!("{:.2}", row.bits / 8.0 / ticks);
        table.row([place.trim_matches('.').to_owned(), row.cause.clone(), bytes]);
    }
    writeln!(output, "{method}: where the bits went")?;
    table.print(output)?;
    writeln!(output)?;
    Ok(())
}
