//! Searches for bodies that need much memory for their size. The search starts with known bad shapes, and then changes the worst
//! shape. It keeps a change if the body then takes a larger share of its memory limit (hill climbing). The test must be the only
//! one in its process, because the allocator counts all threads.

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The numbers that define a body. The test of each decoder defines their meaning.
pub type Shape = [usize; 6];

/// The memory that decoding one body took, its limit, and the length of the body, bytes.
pub struct Taken {
    pub peak: usize,
    pub bound: usize,
    pub body: usize,
}

/// The peak of the memory that `work` takes in addition to the memory allocated before.
pub fn peak(work: impl FnOnce()) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    work();
    MEMORY.peak_usage().saturating_sub(before)
}

/// Bodies from this size count for the ratio of memory to body. The fixed part of the memory dominates for smaller bodies.
const RATIO_BODY_BYTES_MIN: usize = 64 << 10;

/// Tries all shapes in `worst`, and then the given number of changes of the worst shape found. Prints the shape that comes
/// closest to its limit, and the highest ratio of memory to body.
///
/// # Panics
/// If decoding a body takes more than its limit.
pub fn climb(name: &str, worst: &[Shape], tries: usize, mut take: impl FnMut(&Shape) -> Taken) {
    let mut best: (f64, Shape) = (0.0, [0; 6]);
    let mut highest = Ratio { times: 0.0, peak: 0, body: 0 };
    let mut try_shape = |best: &mut (f64, Shape), shape: Shape| {
        let Taken { peak, bound, body } = take(&shape);
        assert!(
            peak <= bound,
            "{name}: {peak} bytes for a body of {body}, at most {bound} are allowed: shape {shape:?}"
        );
        let times = peak as f64 / body as f64;
        if body >= RATIO_BODY_BYTES_MIN && times > highest.times {
            highest = Ratio { times, peak, body };
        }
        let share = peak as f64 / bound as f64;
        if share > best.0 {
            *best = (share, shape);
        }
    };
    for shape in worst {
        try_shape(&mut best, *shape);
    }
    let mut random = Numbers(7);
    for _ in 0..tries {
        let shape = random.changed(best.1);
        try_shape(&mut best, shape);
    }
    println!("{name}: {highest}; {:.2} of its bound, shape {:?}", best.0, best.1);
}

/// The body with the highest `times = peak / body`.
struct Ratio {
    times: f64,
    peak: usize,
    body: usize,
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { times, peak, body } = self;
        if *body == 0 {
            return write!(out, "no body has {RATIO_BODY_BYTES_MIN} bytes or more");
        }
        write!(out, "peak {peak} bytes for a body of {body}: {times:.1} times the body")
    }
}

/// A pseudo-random generator (constants of Knuth's MMIX). It yields the same numbers in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn changed(&mut self, mut shape: Shape) -> Shape {
        for _ in 0..=self.below(2) {
            let at = self.below(shape.len());
            shape[at] = match self.below(4) {
                0 => shape[at] * 2,
                1 => shape[at] / 2,
                2 => shape[at] + 1,
                _ => self.below(70),
            };
        }
        shape
    }
}
