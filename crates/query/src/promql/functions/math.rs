//! What is the result of a function of one number?

pub fn sgn(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        value
    }
}

pub fn rad(degrees: f64) -> f64 {
    degrees * std::f64::consts::PI / 180.0
}

pub fn deg(radians: f64) -> f64 {
    radians * 180.0 / std::f64::consts::PI
}

pub fn clamp(value: f64, parameters: &[f64]) -> Option<f64> {
    let (min, max) = (parameters[0], parameters[1]);
    if max < min { None } else { Some(greater(min, lesser(max, value))) }
}

pub fn clamp_min(value: f64, parameters: &[f64]) -> Option<f64> {
    Some(greater(parameters[0], value))
}

pub fn clamp_max(value: f64, parameters: &[f64]) -> Option<f64> {
    Some(lesser(parameters[0], value))
}

/// Halves are rounded up, also for negative numbers.
pub fn round(value: f64, parameters: &[f64]) -> Option<f64> {
    // The inverse, because `1.0 / 0.1` is exactly 10, but the double 0.1 is not exactly a tenth.
    let inverse = 1.0 / parameters.first().copied().unwrap_or(1.0);
    Some((value * inverse + 0.5).floor() / inverse)
}

/// Unlike [`f64::max`], returns NaN if either value is NaN, except if the other value is positive infinity.
fn greater(a: f64, b: f64) -> f64 {
    if a != f64::INFINITY && b != f64::INFINITY && (a.is_nan() || b.is_nan()) { f64::NAN } else { a.max(b) }
}

/// Unlike [`f64::min`], returns NaN if either value is NaN, except if the other value is negative infinity.
fn lesser(a: f64, b: f64) -> f64 {
    -greater(-a, -b)
}
