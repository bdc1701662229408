//! Values between two samples: lines, cubics and arcs.

/// The value a share of the way from `a` to `b`. A share of 0 is exactly `a`, and 1 exactly `b`.
pub fn linear(a: f64, b: f64, share: f64) -> f64 {
    a * (1.0 - share) + b * share
}

/// The cubic from `a` to `b`, `span` apart, that has these rates of change at its ends.
pub fn hermite((a, a_rate): (f64, f64), (b, b_rate): (f64, f64), span: f64, share: f64) -> f64 {
    let s = share;
    let (s2, s3) = (s * s, s * s * s);
    let from_b = 3.0 * s2 - 2.0 * s3;
    let from_rates = (s3 - 2.0 * s2 + s) * a_rate + (s3 - s2) * b_rate;
    a * (1.0 - from_b) + b * from_b + span * from_rates
}

/// The rotation a share of the way from one unit quaternion to another, at constant angular speed
/// and the shorter way around. A share beyond 1 continues the turn.
pub fn slerp(a: [f64; 4], b: [f64; 4], share: f64) -> [f64; 4] {
    let cosine = dot(a, b);
    // A quaternion and its negative are the same rotation.
    let (b, cosine) = match cosine < 0.0 {
        true => (b.map(|part| -part), -cosine),
        false => (b, cosine),
    };
    let (of_a, of_b) = if cosine > NEARLY_EQUAL && (0.0..=1.0).contains(&share) {
        let squared = squared_angle(cosine);
        (part(1.0 - share, squared), part(share, squared))
    } else if cosine > 1.0 - f64::EPSILON {
        (1.0 - share, share)
    } else {
        let angle = libm::acos(cosine);
        let sine = libm::sin(angle);
        let part = |share: f64| libm::sin(share * angle) / sine;
        (part(1.0 - share), part(share))
    };
    unit(std::array::from_fn(|at| of_a * a[at] + of_b * b[at]))
}

/// The square of a small angle by its cosine, to some billionths: the series of its arc cosine.
fn squared_angle(cosine: f64) -> f64 {
    let x = 1.0 - cosine;
    x * (2.0 + x * (1.0 / 3.0 + x * (4.0 / 45.0 + x * (1.0 / 35.0 + x * (16.0 / 1575.0)))))
}

/// sin(share × angle) / sin(angle) of a small angle, by the series around 0; many times faster than
/// the sines.
fn part(share: f64, squared: f64) -> f64 {
    let t = share * share;
    let second = (7.0 - 3.0 * t) / 360.0;
    let third = (31.0 - t * (18.0 - 3.0 * t)) / 15_120.0;
    share * (1.0 + (1.0 - t) * squared * (1.0 / 6.0 + squared * (second + squared * third)))
}

/// The quaternion with length 1; the identity if it has no direction.
pub fn unit(quaternion: [f64; 4]) -> [f64; 4] {
    let shrink = 1.0 / dot(quaternion, quaternion).sqrt();
    if shrink > 0.0 && shrink.is_finite() {
        quaternion.map(|part| part * shrink)
    } else {
        [0.0, 0.0, 0.0, 1.0]
    }
}

/// The cosine of half the angle between two rotations; negative if their signs differ.
pub(crate) fn dot(a: [f64; 4], b: [f64; 4]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
}

/// Half angles below 18 degrees, where the series are accurate to a ten-millionth of a degree.
const NEARLY_EQUAL: f64 = 0.951;

#[cfg(test)]
mod tests {
    use super::*;

    fn about_z(degrees: f64) -> [f64; 4] {
        let half = degrees.to_radians() / 2.0;
        [0.0, 0.0, half.sin(), half.cos()]
    }

    /// Fails if `hermite` mixes up its ends, or if `span` scales only one of its rates.
    #[test]
    fn a_cubic_passes_its_ends_with_their_rates() {
        let cubic = |t: f64| 2.0 + 3.0 * t - t * t + 0.5 * t * t * t;
        let rate = |t: f64| 3.0 - 2.0 * t + 1.5 * t * t;
        let (from, to) = (1.0, 5.0);
        for share in [0.0, 0.125, 0.5, 0.9, 1.0] {
            let ends = ((cubic(from), rate(from)), (cubic(to), rate(to)));
            let found = hermite(ends.0, ends.1, to - from, share);
            assert!((found - cubic(from + share * (to - from))).abs() < 1e-12);
        }
    }

    /// The series and the sines agree where they meet. Fails if a term of `part` or `squared_angle`
    /// is wrong.
    #[test]
    fn small_arcs_are_arcs_too() {
        let half = |rotation: [f64; 4]| rotation[2].atan2(rotation[3]).to_degrees();
        for turn in [0.0, 0.001, 1.0, 10.0, 35.9, 36.1] {
            for share in [0.0, 0.1, 0.25, 0.5, 0.9, 1.0, 1.25] {
                let turned = slerp(about_z(20.0), about_z(20.0 + turn), share);
                let wrong = 2.0 * half(turned) - 20.0 - turn * share;
                assert!(wrong.abs() < 1e-6, "{turn} degrees, {share}: {wrong}");
            }
        }
    }

    /// Fails if `slerp` takes the longer way (`cosine < 0.0` ignored), or if it is a chord (a `part`
    /// that returns its share).
    #[test]
    fn an_arc_has_constant_speed_and_takes_the_short_way() {
        let (a, b) = (about_z(10.0), about_z(100.0));
        for (share, degrees) in [
            (0.0, 10.0),
            (0.25, 32.5),
            (0.5, 55.0),
            (1.0, 100.0),
            (1.5, 145.0),
        ] {
            for b in [b, b.map(|part| -part)] {
                let turned = slerp(a, b, share);
                assert!(dot(turned, about_z(degrees)).abs() > 1.0 - 1e-12, "{share}");
            }
        }
    }
}
