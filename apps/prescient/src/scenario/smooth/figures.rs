//! Figures by which methods are compared.

use super::methods::Places;

/// Figures of one method in one run, in metres and seconds.
pub(super) struct Figures {
    pub error_mean: f64,
    pub error_p95: f64,
    pub error_p99: f64,
    /// The part of a frame's movement that the entity itself did not make recently.
    pub jump_p99: f64,
    /// How fast its acceleration changed.
    pub jerk_mean: f64,
}

impl Figures {
    pub(super) fn of(drawn: &[Places], truth: &[Places]) -> Self {
        let (mut errors, mut jumps, mut jerks) = (Vec::new(), Vec::new(), Vec::new());
        let numbers: Vec<u8> = truth
            .first()
            .map_or(Vec::new(), |first| first.keys().copied().collect());
        for number in numbers {
            let path = |frames: &[Places]| -> Vec<Option<[f64; 2]>> {
                frames
                    .iter()
                    .map(|places| places.get(&number).copied())
                    .collect()
            };
            let (drawn, truth) = (path(drawn), path(truth));
            let moves = |path: &[Option<[f64; 2]>]| -> Vec<Option<[f64; 2]>> {
                let pairs = path.windows(2);
                pairs.map(|pair| Some(minus(pair[1]?, pair[0]?))).collect()
            };
            for (drawn, truth) in drawn.iter().zip(&truth) {
                if let (Some(drawn), Some(truth)) = (drawn, truth) {
                    errors.push(length(minus(*drawn, *truth)));
                }
            }
            let (shown, real) = (moves(&drawn), moves(&truth));
            for (frame, moved) in shown.iter().enumerate().skip(LATELY) {
                let Some(moved) = moved else {
                    continue;
                };
                let lately = real[frame - LATELY..=frame].iter().flatten();
                let gaps = lately.map(|real| length(minus(*moved, *real)));
                jumps.push(gaps.fold(f64::INFINITY, f64::min));
            }
            let accelerations: Vec<_> = moves(&shown);
            let changes = moves(&accelerations);
            jerks.extend(
                changes
                    .iter()
                    .flatten()
                    .map(|change| length(*change) / FRAME.powi(3)),
            );
        }
        Self {
            error_mean: mean(&errors),
            error_p95: percentile(&mut errors, 0.95),
            error_p99: percentile(&mut errors, 0.99),
            jump_p99: percentile(&mut jumps, 0.99),
            jerk_mean: mean(&jerks),
        }
    }
}

fn minus(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

fn length(by: [f64; 2]) -> f64 {
    by[0].hypot(by[1])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The value that this share of all values does not exceed.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = (last as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or(0.0)
}

/// Frames in which a movement that is shown may have happened: what is shown may be late, but not
/// by more than this.
const LATELY: usize = 90;
const FRAME: f64 = 1.0 / 60.0;
