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
    let (of_a, of_b) = if cosine > NEARLY_EQUAL {
        (1.0 - share, share)
    } else {
        let angle = libm::acos(cosine);
        let sine = libm::sin(angle);
        let part = |share: f64| libm::sin(share * angle) / sine;
        (part(1.0 - share), part(share))
    };
    unit(std::array::from_fn(|at| of_a * a[at] + of_b * b[at]))
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

/// Half angles below 1.8 degrees: the arc and its chord differ by less than a millionth of a turn.
const NEARLY_EQUAL: f64 = 0.9995;

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

    /// Fails if `slerp` takes the longer way (`cosine < 0.0` ignored), or if it is a chord (the
    /// branch of `NEARLY_EQUAL` taken always).
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
